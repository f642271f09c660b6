import { answerText } from "./answer.ts";
import { DeliveryError } from "./platform.ts";

/**
 * What a request to a platform gave. Without an answer it throws a DeliveryError that names the platform and never the address, which
 * may hold a key: `unreachable` when it was not sent, `unanswered` when it may have arrived (contract 10.3).
 */
export async function answered<T>(platform: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    throw isNotConnected(error)
      ? new DeliveryError("unreachable", `${platform} cannot be reached`)
      : new DeliveryError("unanswered", `${platform} did not answer`);
  }
}

// No connection was made, TLS included, so not a byte of the request has left. The runtime says so in the cause.
function isNotConnected(error: unknown): boolean {
  const words = error instanceof Error ? `${error.message} ${error.cause}` : "";
  return /client error \(connect\)|connection refused|dns error|tcp connect/i.test(words);
}

/** What comes before a send: without an answer to this, nothing was sent (contract 10.3). */
export async function notSent<T>(step: () => Promise<T>): Promise<T> {
  try {
    return await step();
  } catch (error) {
    const isOpen = error instanceof DeliveryError && error.why === "unanswered";
    throw isOpen ? new DeliveryError("unreachable", error.message) : error;
  }
}

const TIMEOUT_MS = 15_000;
const UPLOAD_MS = 120_000;

/** A request for JSON. */
interface JsonRequest {
  method?: string;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: object;
  form?: FormData;
  signal?: AbortSignal | undefined;
}

/** The answer as JSON, {} when it is none; its status is for the caller to judge. Throws as answered() does. */
export async function askJson<T extends object>(
  platform: string,
  url: string,
  { method = "POST", headers = {}, body, form, signal }: JsonRequest,
): Promise<{ response: Response; answer: Partial<T> }> {
  const limit = AbortSignal.timeout(form === undefined ? TIMEOUT_MS : UPLOAD_MS);
  return await answered(platform, async () => {
    const response = await fetch(url, {
      method,
      headers: body === undefined
        ? headers
        : { ...headers, "content-type": "application/json; charset=utf-8" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(form === undefined ? {} : { body: form }),
      redirect: "manual",
      signal: signal === undefined ? limit : AbortSignal.any([limit, signal]),
    });
    return { response, answer: objectOf<T>(await answerText(response)) };
  });
}

/** A text of JSON as an object; {} for anything else. */
export function objectOf<T extends object>(text: string): Partial<T> {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
