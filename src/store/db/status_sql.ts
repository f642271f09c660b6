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

// Which statuses are open and which have ended is defined in domain; queries take it from here.

// The planner uses a partial index only when the query repeats its condition, with the statuses in the same order.
function among(statuses: readonly string[]): string {
  return `in (${statuses.map((status) => `'${status}'`).join(", ")})`;
}

/** For a condition on a task's `status`. */
export const TASK_IS_ACTIVE = among(ACTIVE_TASK_STATUSES);
export const TASK_HAS_ENDED = among(ENDED_TASK_STATUSES);

/** For a condition on a task's `type`. */
export const TASK_IS_TIMED = among(TASK_TYPES.filter(isTimed));
export const TASK_IS_RECURRING = among(TASK_TYPES.filter(isRecurring));

/** For a condition on an execution's `status`. */
export const EXECUTION_IS_OPEN = among(OPEN_EXECUTION_STATUSES);
export const EXECUTION_HAS_ENDED = among(ENDED_EXECUTION_STATUSES);

/** For a condition on an inbound message's `status`. */
export const MESSAGE_IS_UNROUTED = among(UNROUTED_STATUSES);
export const MESSAGE_IS_ROUTED = among(ROUTED_STATUSES);
