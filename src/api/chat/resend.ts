import { conflict } from "../../domain/call/error.ts";
import { parseJson } from "../../domain/call/json.ts";
import {
  type OutboundMessage,
  type Resend,
  RESEND_MAX,
  type ResendResult,
} from "../../domain/chat/message.ts";
import type { Statement } from "../../store/db/database.ts";
import { recordTransition } from "../../store/events/journal.ts";
import { findOutbound, listUndelivered, resendOutbound } from "../../store/chat/resend.ts";
import { requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";
import type { Platforms } from "../call/platforms.ts";

/**
 * Sends a failed message again, even when it may have arrived (contract 10.3). A queued message stays unchanged. Throws
 * `not_found`, or `conflict` for a sent message.
 */
export async function planResend(
  { db, clock, platforms }: Deps<"db" | "clock" | "platforms">,
  call: Call,
  id: string,
): Promise<Creation<OutboundMessage>> {
  const found = requireFound(await findOutbound(db, id), "outbound message", id);
  const message = parseJson<OutboundMessage>(found);
  if (message.status === "sent") {
    throw conflict(
      `Cannot resend ${id}: ${message.platform} received it. Send a new message with message send.`,
    );
  }
  if (message.next_attempt_at !== null) return { statements: [], response: message };
  checkConnected(platforms, message.platform);
  const now = clock.now();
  return {
    statements: buildResend(message, call, now),
    response: { ...message, error: "", next_attempt_at: now },
    lost: () => conflict(`Cannot resend ${id}: another request is resending it.`),
  };
}

/** Resends up to RESEND_MAX failed messages of a platform, oldest first. Throws `conflict` without a connection. */
export async function planResends(
  { db, clock, platforms }: Deps<"db" | "clock" | "platforms">,
  call: Call,
  { platform, since = 0 }: Resend,
): Promise<Creation<ResendResult>> {
  checkConnected(platforms, platform);
  const found = await listUndelivered(db, platform, since, RESEND_MAX + 1);
  const now = clock.now();
  const taken = found.slice(0, RESEND_MAX);
  return {
    statements: taken.flatMap((message) => buildResend(message, call, now)),
    response: { resent: taken.length, more: found.length > RESEND_MAX },
    lost: () => conflict("Cannot resend the messages: another request is resending one of them. Try again."),
  };
}

function buildResend(
  { id, session_key, message_id }: Pick<OutboundMessage, "id" | "session_key" | "message_id">,
  { caller }: Call,
  now: number,
): Statement[] {
  return recordTransition(resendOutbound(id, now), now, {
    kind: "message.resent",
    session_key,
    message_id,
    actor: caller.subject,
    data: { outbound_id: id },
  });
}

function checkConnected(platforms: Platforms, name: string): void {
  if (platforms.get(name)?.platform) return;
  throw conflict(`Cannot resend: no platform called ${name} is connected`);
}
