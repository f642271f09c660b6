import { RefusedAddressError } from "../base/address.ts";
import { callOutside } from "./guarded_fetch.ts";
import { encryptPush, type SubscriptionKeys } from "./push_encryption.ts";
import { parseRetryAfter } from "./retry_after.ts";
import { buildVapidHeader, type VapidKey } from "./vapid.ts";

const TIMEOUT_MS = 10_000;
const ANSWER_MAX_BYTES = 16 * 1024;
/** How long a push service keeps a message for a device that is off. */
const KEEP_S = 24 * 60 * 60;

interface WebPush {
  endpoint: string;
  keys: SubscriptionKeys;
  text: string;
  /** Equal in every try: the push service replaces an earlier message with the same topic. */
  topic: string;
  isUrgent: boolean;
}

interface Sender {
  key: VapidKey;
  contact: string;
  allowPrivate: boolean;
  now: number;
  signal: AbortSignal;
}

/** Result of one try. */
export interface PushResult {
  /** 0: no answer. */
  status: number;
  error: string;
  /** null: the push service asked for no pause. */
  retryAfterMs: number | null;
  /** Another try would fail, too. */
  isFinal: boolean;
}

/** Sends one message to a device. Never throws. */
export async function sendPush(
  { endpoint, keys, text, topic, isUrgent }: WebPush,
  { key, contact, allowPrivate, now, signal }: Sender,
): Promise<PushResult> {
  try {
    const body = await encryptPush(text, keys);
    const { status, headers } = await callOutside({
      url: endpoint,
      headers: {
        authorization: await buildVapidHeader(key, { endpoint, contact, now }),
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "ttl": String(KEEP_S),
        "topic": topic,
        "urgency": isUrgent ? "high" : "normal",
        "user-agent": "svc",
      },
      body,
      timeoutMs: TIMEOUT_MS,
      answerMaxBytes: ANSWER_MAX_BYTES,
      allowPrivate,
      signal,
    });
    const isAccepted = status >= 200 && status < 300;
    const error = isAccepted ? "" : `the push service answered ${status}`;
    const isFinal = status >= 300 && status < 500 && status !== 408 && status !== 429;
    return { status, error, retryAfterMs: parseRetryAfter(headers["retry-after"], now), isFinal };
  } catch (error) {
    return {
      status: 0,
      error: error instanceof Error ? error.message : String(error),
      retryAfterMs: null,
      isFinal: error instanceof RefusedAddressError,
    };
  }
}
