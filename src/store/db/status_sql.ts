import { isRecurring, isTimed } from "../../domain/work/task_type.ts";
import {
  ACTIVE_TASK_STATUSES,
  ENDED_EXECUTION_STATUSES,
  ENDED_TASK_STATUSES,
  OPEN_EXECUTION_STATUSES,
  ROUTED_STATUSES,
  TASK_TYPES,
  UNROUTED_STATUSES,
} from "../../domain/call/vocabulary.ts";

// A query uses a partial index only when it repeats the condition of the index with the same order of statuses.
function buildInList(statuses: readonly string[]): string {
  return `in (${statuses.map((status) => `'${status}'`).join(", ")})`;
}

// Conditions on a task's `status`.
export const TASK_IS_ACTIVE = buildInList(ACTIVE_TASK_STATUSES);
export const TASK_HAS_ENDED = buildInList(ENDED_TASK_STATUSES);

/** Condition on tasks that may start when they are due. The parents of others have not all ended, or something blocks them. */
export const TASK_IS_QUEUED = "status = 'pending' and held = '' and open_parents = 0";

// Conditions on a task's `type`.
export const TASK_IS_TIMED = buildInList(TASK_TYPES.filter(isTimed));
export const TASK_IS_RECURRING = buildInList(TASK_TYPES.filter(isRecurring));

// Conditions on an execution's `status`.
export const EXECUTION_IS_OPEN = buildInList(OPEN_EXECUTION_STATUSES);
export const EXECUTION_HAS_ENDED = buildInList(ENDED_EXECUTION_STATUSES);

// Conditions on an inbound message's `status`.
export const MESSAGE_IS_UNROUTED = buildInList(UNROUTED_STATUSES);
export const MESSAGE_IS_ROUTED = buildInList(ROUTED_STATUSES);
