import type { Call } from "../api/call/call.ts";
import type { SentFile } from "../api/chat/media.ts";
import { digest } from "../base/bytes.ts";

/** Adds the fingerprint of a form to the call, for a comparison with earlier calls of the same Idempotency-Key (contract 1.9, contract 8.4). */
export async function withForm(call: Call, input: unknown, sent: SentFile | null): Promise<Call> {
  if (call.idempotency === null) return call;
  const file = sent === null ? null : [sent.originalName, await sent.file.digest()];
  return {
    ...call,
    idempotency: { ...call.idempotency, fingerprint: digest(JSON.stringify([input, file])) },
  };
}
