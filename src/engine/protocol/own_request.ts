// Requests of an engine to the service with the token of the run
import { setTimeout as pause } from "node:timers/promises";
import type { Line, Order } from "./adapter.ts";
import { isObject } from "./json_fields.ts";

/** How long one request waits for an answer of a person. */
export const WAIT_MS = 60_000;
const AGAIN_MS = 1_000;

/** A request to the service with the token of the run. */
interface OwnRequest {
  method: string;
  path: string;
  body?: unknown;
  /** The idempotency key, the same in each repetition. */
  key?: string;
}

/** Repeats a request until the service answers, because it may be restarting. Throws for a refusal, and when the signal aborts. */
export async function sendUntilAnswered(
  env: Order["env"],
  request: OwnRequest,
  signal: AbortSignal,
): Promise<Line> {
  while (true) {
    const response = await send(env, request, signal).catch(() => null);
    signal.throwIfAborted();
    if (response !== null && response.status < 500 && response.status !== 429) {
      const answer: unknown = await response.json();
      if (response.ok && isObject(answer)) return answer;
      throw new Error(`${request.path} answered ${response.status}`);
    }
    await response?.body?.cancel();
    await pause(AGAIN_MS, undefined, { signal });
  }
}

function send(
  env: Order["env"],
  { method, path, body, key }: OwnRequest,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(`${env.SVC_URL}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${env.SVC_TOKEN}`,
      "content-type": "application/json",
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS + AGAIN_MS * 10)]),
  });
}
