import { DeliveryError } from "../platform.ts";

const BASE_URL = "https://api.telegram.org";
// Beside the time that the server itself holds a request open.
const TIMEOUT_MS = 15_000;

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

/** There was no answer. `wasSent`: the request may have arrived. */
class TelegramSilent extends Error {
  readonly wasSent: boolean;

  constructor(message: string, wasSent: boolean) {
    super(message);
    this.name = "TelegramSilent";
    this.wasSent = wasSent;
  }
}

/** Calls of one bot. The token is in every address, so no address is ever in a message (decision 0093). */
export class TelegramClient {
  readonly #base: string;

  constructor(token: string, baseUrl: string) {
    this.#base = `${(baseUrl || BASE_URL).replace(/\/$/, "")}/bot${token}`;
  }

  /** Throws TelegramError for a refusal, TelegramSilent without an answer. */
  async call<T>(
    method: string,
    body: object,
    { holdMs = 0, signal }: { holdMs?: number; signal?: AbortSignal } = {},
  ): Promise<T> {
    const signals = [AbortSignal.timeout(holdMs + TIMEOUT_MS), ...(signal === undefined ? [] : [signal])];
    let answer: Answer<T>;
    try {
      const response = await fetch(`${this.#base}/${method}`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
        redirect: "manual",
        signal: AbortSignal.any(signals),
      });
      const text = await response.text();
      answer = parsed<T>(text, response.status);
    } catch (error) {
      if (error instanceof TelegramError) throw error;
      // The messages of fetch hold the address, and that holds the token.
      const refused = error instanceof Error &&
        /connection refused|dns error|tcp connect/i.test(error.message);
      throw new TelegramSilent(refused ? "Telegram cannot be reached" : "Telegram did not answer", !refused);
    }
    if (answer.ok) return answer.result;
    const retryAfter = answer.parameters?.retry_after;
    throw new TelegramError(
      answer.error_code,
      answer.description,
      retryAfter === undefined ? null : retryAfter * 1000,
    );
  }
}

type Answer<T> =
  | { ok: true; result: T }
  | { ok: false; error_code: number; description: string; parameters?: { retry_after?: number } };

function parsed<T>(text: string, status: number): Answer<T> {
  try {
    return JSON.parse(text);
  } catch {
    return { ok: false, error_code: status, description: `Telegram answered ${status}` };
  }
}

/** What a failed send means for the reply (contract 10.3). */
export function deliveryError(error: unknown): DeliveryError {
  if (error instanceof TelegramSilent) {
    return new DeliveryError(error.wasSent ? "unanswered" : "unreachable", error.message);
  }
  if (!(error instanceof TelegramError)) return new DeliveryError("refused", String(error));
  const { code, message, retryAfterMs } = error;
  if (code === 429) return new DeliveryError("limited", message, { scope: "chat", retryAfterMs });
  if (code === 401 || code === 404 || code >= 500) return new DeliveryError("unreachable", message);
  return new DeliveryError("refused", message);
}
