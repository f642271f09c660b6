import { answerText } from "../answer.ts";
import type { PartFile } from "../part_file.ts";
import { DeliveryError } from "../platform.ts";
import { answered, objectOf } from "../request.ts";
import { askedMs } from "../retry_after.ts";

const BASE_URL = "https://api.telegram.org";
// Beside the time that the server itself holds a request open.
const TIMEOUT_MS = 15_000;
// Beside that, for the bytes of a file.
const UPLOAD_MS = 120_000;

/** What the server answered instead of a result. */
export class TelegramError extends Error {
  readonly code: number;
  readonly retryAfterMs: number | null;

  constructor(code: number, description: string, retryAfterMs: number | null) {
    super(description);
    this.name = "TelegramError";
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

interface CallOptions {
  /** How long the server itself holds the request open. */
  holdMs?: number;
  signal?: AbortSignal;
}

/** Calls of one bot. The token is in every address, so no address is ever in a message (decision 0023). */
export class TelegramClient {
  readonly #root: string;
  readonly #token: string;

  constructor(token: string, baseUrl: string) {
    this.#root = (baseUrl || BASE_URL).replace(/\/$/, "");
    this.#token = token;
  }

  /** Throws TelegramError for a refusal, DeliveryError without an answer. */
  call<T>(method: string, body: object, options: CallOptions = {}): Promise<T> {
    const headers = { "content-type": "application/json" };
    return this.#post(method, { headers, body: JSON.stringify(body) }, options);
  }

  /** As call(), with a file in a field of its own. */
  upload<T>(method: string, body: object, field: string, file: PartFile): Promise<T> {
    const form = new FormData();
    for (const [name, value] of Object.entries(body)) {
      form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
    form.set(field, new File([file.bytes], file.name, { type: file.mime }));
    return this.#post(method, { body: form }, { holdMs: UPLOAD_MS });
  }

  /** The bytes of a file of a message, as they come. Throws as call() does. */
  async download(fileId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { file_path: path = "" } = await this.call<{ file_path?: string }>("getFile", { file_id: fileId }, {
      signal,
    });
    const url = `${this.#root}/file/bot${this.#token}/${path}`;
    const response = await answered("Telegram", () => fetch(url, { redirect: "manual", signal }));
    if (response.ok && response.body !== null) return response.body;
    await response.body?.cancel();
    throw new TelegramError(response.status, `Telegram answered ${response.status}`, null);
  }

  async #post<T>(method: string, init: RequestInit, { holdMs = 0, signal }: CallOptions): Promise<T> {
    const signals = [AbortSignal.timeout(holdMs + TIMEOUT_MS), ...(signal === undefined ? [] : [signal])];
    const { status, headers, text } = await answered("Telegram", async () => {
      const response = await fetch(`${this.#root}/bot${this.#token}/${method}`, {
        ...init,
        method: "POST",
        redirect: "manual",
        signal: AbortSignal.any(signals),
      });
      return { status: response.status, headers: response.headers, text: await answerText(response) };
    });
    const answer = objectOf<Answer<T>>(text);
    if (answer.ok === true) return answer.result as T;
    // Between us and Telegram may be something with answers of its own.
    const { error_code = status, description = `Telegram answered ${status}`, parameters } = answer;
    const retryAfterMs = askedMs(parameters?.retry_after ?? headers.get("retry-after"));
    throw new TelegramError(error_code, description, retryAfterMs);
  }
}

interface Answer<T> {
  ok: boolean;
  result: T;
  error_code: number;
  description: string;
  parameters: { retry_after?: number };
}

/** What a failed send means for the reply (contract 10.3). */
export function deliveryError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  if (!(error instanceof TelegramError)) return new DeliveryError("refused", String(error));
  const { code, message, retryAfterMs } = error;
  if (code === 429) return new DeliveryError("limited", message, { scope: "chat", retryAfterMs });
  if (code === 401 || code === 404 || code >= 500) return new DeliveryError("unreachable", message);
  return new DeliveryError("refused", message);
}
