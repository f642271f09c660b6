import { countBytes } from "../base/bytes.ts";
import { isWebhookKey } from "../domain/system/webhook.ts";
import { callOutside, type OutsideAnswer } from "./guarded_fetch.ts";
import { signStandard } from "./webhook_signature.ts";
import { parseRetryAfter } from "./retry_after.ts";

const TIMEOUT_MS = 15_000;
const ANSWER_MAX_BYTES = 64 * 1024;
const EVENT_MAX_BYTES = 20_000;

export interface Target {
  url: string;
  secret: string;
  allow_private: boolean;
}

interface WebhookEvent {
  /** Equal in every try. */
  id: string;
  kind: string;
  at: number;
  data: Record<string, unknown>;
}

/** Result of one try. */
export interface DeliveryResult {
  /** 0: no answer. */
  status: number;
  error: string;
  duration_ms: number;
  /** null: the receiver asked for no pause. */
  retryAfterMs: number | null;
}

/** Sends a body with a signature of Standard Webhooks. Throws as callOutside() does. */
export function postSigned(target: Target, id: string, now: number, body: string): Promise<OutsideAnswer> {
  return callOutside({
    url: target.url,
    headers: {
      "content-type": "application/json",
      "user-agent": "svc",
      ...signStandard(target.secret, id, now, body),
    },
    body,
    timeoutMs: TIMEOUT_MS,
    answerMaxBytes: ANSWER_MAX_BYTES,
    allowPrivate: target.allow_private,
  });
}

interface EventTarget extends Omit<Target, "secret"> {
  /** Returns the key, or throws an Error with the reason why there is none. */
  readSecret: () => Promise<string>;
}

/** Sends a signed event once. Never throws. */
export async function sendEvent(
  { readSecret, ...target }: EventTarget,
  event: WebhookEvent,
  now: number,
): Promise<DeliveryResult> {
  const started = performance.now();
  const done = (status: number, error: string, answer?: OutsideAnswer): DeliveryResult => ({
    status,
    error,
    duration_ms: Math.round(performance.now() - started),
    retryAfterMs: parseRetryAfter(answer?.headers["retry-after"], now),
  });
  try {
    const secret = await readSecret();
    if (!isWebhookKey(secret)) throw new Error("its secret is not a whsec_ key");
    const answer = await postSigned({ ...target, secret }, event.id, now, buildBody(event));
    const isAccepted = answer.status >= 200 && answer.status < 300;
    return done(answer.status, isAccepted ? "" : `it answered ${answer.status}`, answer);
  } catch (error) {
    return done(0, error instanceof Error ? error.message : String(error));
  }
}

function buildBody({ kind, at, data }: WebhookEvent): string {
  const body = (shown: Record<string, unknown>) =>
    JSON.stringify({ type: kind, timestamp: new Date(at).toISOString(), data: shown });
  const whole = body(data);
  if (countBytes(whole) <= EVENT_MAX_BYTES) return whole;
  return body({ ...data, data: {}, truncated: true });
}
