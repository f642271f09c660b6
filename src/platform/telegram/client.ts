import type { PartFile } from "../part_file.ts";
import { type DeliveryError, PlatformError } from "../platform.ts";
import { requireAnswer, sendRequest, TIMEOUT_MS, UPLOAD_TIMEOUT_MS } from "../request.ts";
import { parsePauseSeconds } from "../retry_after.ts";

const BASE_URL = "https://api.telegram.org";

export class TelegramError extends PlatformError {
  readonly code: number;

  /** New id of a group that became a supergroup. "" if the id has not changed. */
  readonly movedTo: string;

  constructor(code: number, description: string, retryAfterMs: number | null, movedTo = "") {
    super(description, retryAfterMs);
    this.code = code;
    this.movedTo = movedTo;
  }

  /** 409: another program polls with the same token. */
  get isKeyRefused(): boolean {
    return [401, 404, 409].includes(this.code);
  }

  get why(): DeliveryError["why"] {
    if (this.code === 429) return "limited";
    return this.code === 401 || this.code === 404 || this.code >= 500 ? "unreachable" : "refused";
  }

  override get scope(): DeliveryError["scope"] {
    return "chat";
  }
}

interface CallOptions {
  /** Time that Telegram may keep the request open, in addition to the timeout. */
  holdMs?: number;
  signal?: AbortSignal;
}

/** Calls Telegram for one bot. The token is in every address, so no error contains an address. */
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

  /** Does the same as call(), with a file in `field`. */
  upload<T>(method: string, body: object, field: string, file: PartFile): Promise<T> {
    const form = new FormData();
    for (const [name, value] of Object.entries(body)) {
      form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
    }
    form.set(field, new File([file.bytes], file.name, { type: file.mime }));
    return this.#post(method, { body: form }, { holdMs: UPLOAD_TIMEOUT_MS });
  }

  /** Opens a file of a message. Throws as call() does. */
  async download(fileId: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { file_path: path = "" } = await this.call<{ file_path?: string }>("getFile", { file_id: fileId }, {
      signal,
    });
    const url = `${this.#root}/file/bot${this.#token}/${path}`;
    const response = await requireAnswer("Telegram", () => fetch(url, { redirect: "manual", signal }));
    if (response.ok && response.body !== null) return response.body;
    await response.body?.cancel();
    throw new TelegramError(response.status, `Telegram answered ${response.status}`, null);
  }

  async #post<T>(
    method: string,
    request: { headers?: Record<string, string>; body: BodyInit },
    { holdMs = 0, signal }: CallOptions,
  ): Promise<T> {
    const url = `${this.#root}/bot${this.#token}/${method}`;
    const timeoutMs = holdMs + TIMEOUT_MS;
    const { status, headers, answer } = await sendRequest<Answer<T>>("Telegram", url, {
      ...request,
      timeoutMs,
      signal,
    });
    if (answer.ok === true) return answer.result as T;
    // The answer can come from a proxy between the service and Telegram.
    const { error_code = status, description = `Telegram answered ${status}`, parameters } = answer;
    const retryAfterMs = parsePauseSeconds(parameters?.retry_after ?? headers.get("retry-after"));
    const movedTo = parameters?.migrate_to_chat_id;
    throw new TelegramError(
      error_code,
      description,
      retryAfterMs,
      movedTo === undefined ? "" : String(movedTo),
    );
  }
}

interface Answer<T> {
  ok: boolean;
  result: T;
  error_code: number;
  description: string;
  parameters: { retry_after?: number; migrate_to_chat_id?: number };
}
