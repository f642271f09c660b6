import { conflict, invalid } from "../../domain/call/error.ts";
import { mayCall } from "../../domain/call/scope.ts";
import { INBOX_FAILURES } from "../../domain/call/vocabulary.ts";
import {
  getInboxScope,
  INBOX_SINCE_DEFAULT_MS,
  type InboxDismissal,
  type InboxItem,
} from "../../domain/system/inbox.ts";
import { findItemReferences, listInboxItems, storeDismissal } from "../../store/events/inbox.ts";
import { type Answer, answer, answerList, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** Lists everything that needs a person, newest first, without dismissed and snoozed items. */
export async function listInbox(
  { db, clock, secrets }: Deps<"db" | "clock" | "secrets">,
  call: Call,
  { since: given }: { since?: number | undefined },
): Promise<Answer<InboxItem[]>> {
  const now = clock.now();
  const since = given ?? now - INBOX_SINCE_DEFAULT_MS;
  const lost = mayCall(call.caller, getInboxScope("secret_lost")) ? await secrets.listLost() : [];
  const items = await listInboxItems(db, { since, now, lost });
  return answerList(items.filter(({ kind }) => mayCall(call.caller, getInboxScope(kind))));
}

/**
 * Hides a failure for good, or any item until a time. Throws `not_found` for an item that does not need a person,
 * `invalid_request` for a time in the past, and `conflict` when a state such as a paused worker has no time.
 */
export async function dismissItem(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  { kind, id, until }: InboxDismissal,
): Promise<Answer<InboxDismissal>> {
  const now = clock.now();
  if (until !== null && until <= now) throw invalid("until", "must be in the future");
  const references = requireFound(await findItemReferences(db, { kind, id }), `inbox item ${kind}`, id);
  if (until === null && !INBOX_FAILURES.some((one) => one === kind)) {
    throw conflict(
      `Cannot dismiss ${kind} ${id}: it stays in the inbox until it is resolved. Give \`until\` to snooze it.`,
    );
  }
  await db.write([
    storeDismissal({ kind, id, until }, now),
    recordBy(call, now, { ...references, kind: "inbox.dismissed", data: { item: kind, id, until } }),
  ]);
  return answer({ kind, id, until });
}
