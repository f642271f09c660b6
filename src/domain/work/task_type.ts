import { TASK_TYPE_RULES, type TaskType } from "../call/vocabulary.ts";

export type TimedTaskType = Exclude<TaskType, "immediate">;

/** Returns whether tasks of this type wait for a time. */
export function isTimed(type: TaskType): type is TimedTaskType {
  return TASK_TYPE_RULES[type].isTimed;
}

/** Returns whether tasks of this type wait for their next time after each run. */
export function isRecurring(type: TaskType): boolean {
  return TASK_TYPE_RULES[type].isRecurring;
}
