import { conflict } from "../../domain/call/error.ts";
import { boundTo } from "../../domain/call/scope.ts";
import {
  QUEUE_CANCEL_MAX,
  type QueueCancel,
  type QueueCancelled,
  type QueueFilter,
  type Task,
} from "../../domain/work/task.ts";
import { moved } from "../../store/events/journal.ts";
import { cancelOccurrence } from "../../store/work/occurrence.ts";
import { findQueued, listQueue as listQueueRows } from "../../store/work/queue.ts";
import { cancelTask } from "../../store/work/task_transitions.ts";
import { type Answer, answer, page } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** GET /api/queue: active tasks of all workers and conversations (contract 17). */
export async function listQueue(
  { db }: Deps<"db">,
  call: Call,
  filter: QueueFilter,
): Promise<Answer<Task[]>> {
  return page(await listQueueRows(db, filter, boundTo(call.caller), filter));
}

/**
 * POST /api/queue/cancel: cancels every task that waits or is scheduled and matches, all or none (contract 17). Throws
 * `conflict` when there are not as many as the caller expects, or one was started meanwhile.
 */
export async function cancelQueue(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  { filter, expected }: QueueCancel,
): Promise<Answer<QueueCancelled>> {
  const found = await findQueued(db, filter, QUEUE_CANCEL_MAX + 1);
  if (found.length !== expected) throw changed(found.length, expected);
  const now = clock.now();
  const actor = call.caller.subject;
  const statements = found.flatMap(({ id, ...keys }) => [
    ...moved(cancelTask(id, `cancelled by ${actor}`, now), now, {
      kind: "task.cancelled",
      ...keys,
      task_id: id,
      actor,
    }),
    cancelOccurrence(id, now),
  ]);
  await db.writeOr(statements, () => conflict("Cannot cancel: one of the tasks was started; look again"));
  return answer({ cancelled_tasks: expected });
}

function changed(count: number, expected: number) {
  const there = count > QUEUE_CANCEL_MAX ? `more than ${QUEUE_CANCEL_MAX}` : String(count);
  return conflict(`Cannot cancel: ${there} tasks match, ${expected} were expected; look again`);
}
