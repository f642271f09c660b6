import { DeliveryError } from "./platform.ts";

/**
 * Runs a request to a platform. Without an answer it throws a DeliveryError: `unreachable` when the request did not leave, `unanswered`
 * when it may have arrived. The error never contains the address, which can contain a key.
 */
export async function requireAnswer<T>(platform: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw isNotConnected(error)
      ? new DeliveryError("unreachable", `Cannot reach ${platform}`)
      : new DeliveryError("unanswered", `${platform} did not answer`);
  }
}

// If there was no connection (including TLS), no byte of the request was sent. Only the texts of the runtime's errors show this.
function isNotConnected(error: unknown): boolean {
  const words = error instanceof Error ? `${error.message} ${error.cause}` : "";
  return /client error \(connect\)|connection refused|dns error|tcp connect/i.test(words);
}

/** Runs a step before a send. Without an answer to this step, the service has sent nothing. */
export async function runBeforeSend<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const isUnanswered = error instanceof DeliveryError && error.why === "unanswered";
    throw isUnanswered ? new DeliveryError("unreachable", error.message) : error;
  }
}

export const TIMEOUT_MS = 15_000;
export const UPLOAD_TIMEOUT_MS = 120_000;

interface PlatformRequest {
  method?: string | undefined;
  headers?: Record<string, string> | undefined;
  body?: BodyInit | undefined;
  timeoutMs?: number;
  signal?: AbortSignal | undefined;
}

interface PlatformAnswer<T> {
  isOk: boolean;
  status: number;
  headers: Headers;
  /** {} for an answer that isn't JSON. */
  answer: Partial<T>;
}

/** Sends a request and reads the answer as JSON, whatever its status is. Throws as requireAnswer() does. */
export async function sendRequest<T extends object>(
  platform: string,
  url: string,
  { method = "POST", headers = {}, body, timeoutMs = TIMEOUT_MS, signal }: PlatformRequest,
): Promise<PlatformAnswer<T>> {
  const timeout = AbortSignal.timeout(timeoutMs);
  return await requireAnswer(platform, async () => {
    const response = await fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      redirect: "manual",
      signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
    });
    const answer = parseJsonObject<T>(await readAnswerText(response));
    return { isOk: response.ok, status: response.status, headers: response.headers, answer };
  });
}

export interface JsonRequest {
  method?: string;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: object;
  form?: FormData;
  signal?: AbortSignal | undefined;
}

/** Does the same as sendRequest(), with a body of JSON or a form. */
export async function requestJson<T extends object>(
  platform: string,
  url: string,
  { headers = {}, body, form, ...request }: JsonRequest,
): Promise<PlatformAnswer<T>> {
  if (body === undefined) {
    const timeoutMs = form === undefined ? TIMEOUT_MS : UPLOAD_TIMEOUT_MS;
    return await sendRequest(platform, url, { ...request, headers, body: form, timeoutMs });
  }
  const typed = { ...headers, "content-type": "application/json; charset=utf-8" };
  return await sendRequest(platform, url, { ...request, headers: typed, body: JSON.stringify(body) });
}

/** Parses JSON. Returns {} for a text that isn't a JSON object. */
export function parseJsonObject<T extends object>(text: string): Partial<T> {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

// The largest real answers, 100 updates of Telegram, have some hundred KB.
const ANSWER_BYTES = 16 * 1024 * 1024;

/** Reads the text of an answer. Throws Error after 16 MiB. */
export async function readAnswerText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES) throw new Error(`the answer has more than ${ANSWER_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
