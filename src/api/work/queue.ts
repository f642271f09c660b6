import { conflict } from "../../domain/call/error.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import {
  QUEUE_CANCEL_MAX,
  type QueueCancel,
  type QueueCancelResult,
  type QueueFilter,
} from "../../domain/work/task.ts";
import { recordTransition } from "../../store/events/journal.ts";
import { cancelOccurrence } from "../../store/work/occurrence.ts";
import { listCancellableTasks, listQueue as listQueueRows } from "../../store/work/queue.ts";
import { cancelTask } from "../../store/work/task_transitions.ts";
import { type Answer, answer, answerPage } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

export async function listQueue({ db }: Deps<"db">, call: Call, filter: QueueFilter) {
  return answerPage(await listQueueRows(db, filter, getBoundSessionKey(call.caller), filter));
}

/** Cancels all matching tasks or none. Throws `conflict` when their number is not `expected` or one has started. */
export async function cancelQueue(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  { filter, expected }: QueueCancel,
): Promise<Answer<QueueCancelResult>> {
  const found = await listCancellableTasks(db, filter, QUEUE_CANCEL_MAX + 1);
  if (found.length !== expected) throw buildCountError(found.length, expected);
  const now = clock.now();
  const actor = call.caller.subject;
  const statements = found.flatMap(({ id, ...keys }) => [
    ...recordTransition(cancelTask(id, `cancelled by ${actor}`, now), now, {
      kind: "task.cancelled",
      ...keys,
      task_id: id,
      actor,
    }),
    cancelOccurrence(id, now),
  ]);
  await db.writeOr(
    statements,
    () => conflict("Cannot cancel: one of the tasks has started. List the tasks again."),
  );
  return answer({ cancelled_tasks: expected });
}

function buildCountError(count: number, expected: number) {
  const matching = count > QUEUE_CANCEL_MAX ? `more than ${QUEUE_CANCEL_MAX}` : String(count);
  return conflict(
    `Cannot cancel: ${matching} tasks match, but ${expected} were expected. List the tasks again.`,
  );
}
