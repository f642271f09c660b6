import { conflict, invalid } from "../../domain/call/error.ts";
import { mayCall } from "../../domain/call/scope.ts";
import { INBOX_FAILURES } from "../../domain/call/vocabulary.ts";
import { INBOX_SINCE_DEFAULT_MS, type InboxDismissal, type InboxItem } from "../../domain/system/inbox.ts";
import {
  findBlockingBudgets,
  findEndedRounds,
  findFailedMessages,
  findFailedPushes,
  findFailedRuns,
  findItemReferences,
  findLimitedEngines,
  findOpenQuestions,
  findPausedSchedules,
  findPausedWorkers,
  findStoppedTasks,
  findUndelivered,
  listShownSecrets,
  storeDismissal,
} from "../../store/events/inbox.ts";
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
  const found = await Promise.all([
    findLimitedEngines(db, now),
    findFailedRuns(db, since, now),
    findStoppedTasks(db, since, now),
    findFailedMessages(db, since, now),
    findUndelivered(db, since, now),
    findPausedWorkers(db, now),
    findPausedSchedules(db, now),
    findBlockingBudgets(db, now),
    findOpenQuestions(db, now),
    findFailedPushes(db, now),
    findEndedRounds(db, since, now),
  ]);
  // Only people who may change secrets see their names.
  const lost = mayCall(call.caller, "write:secrets") ? await secrets.listLost() : [];
  const shown = lost.length === 0 ? [] : await listShownSecrets(db, lost, now);
  const unreadable = shown.map((name): InboxItem => ({
    ...NO_REFERENCES,
    kind: "secret_lost",
    id: name,
    at: now,
    title: name,
    detail: "another signing key encrypted this secret. Set it again, or restore that key",
  }));
  return answerList([...unreadable, ...found.flat()].sort((one, other) => other.at - one.at));
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

const NO_REFERENCES = {
  worker_id: "",
  worker_name: "",
  execution_id: "",
  message_id: "",
  session_key: "",
  engine: "",
  question_id: "",
  task_id: "",
  budget_id: "",
};
