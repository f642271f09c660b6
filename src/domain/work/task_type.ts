import type { TaskType } from "../call/vocabulary.ts";

/** Rules of one task type. All code that depends on the type reads them. */
interface TaskTypeRules {
  /** Waits for a time, so the task can be changed, paused and run by hand. */
  isTimed: boolean;
  /** Waits for its next time after each run. */
  isRecurring: boolean;
  /** Fields in addition to those of every task. */
  fields: readonly string[];
  /** Default number of consecutive failures that pause the task; 0: never. */
  pauseAfterFailures: number;
  /** Fields that a plan of the bee must give, as text for its prompt. */
  needs: string;
}

export const TASK_TYPE_RULES: Readonly<Record<TaskType, TaskTypeRules>> = {
  immediate: { isTimed: false, isRecurring: false, fields: ["verify"], pauseAfterFailures: 0, needs: "" },
  countdown: {
    isTimed: true,
    isRecurring: false,
    fields: ["scheduled_at", "name", "paused", "gate", "verify", "deliver_to"],
    pauseAfterFailures: 0,
    needs: ' with "scheduled_at" in Unix ms, at least 5 seconds ahead',
  },
  scheduled: {
    isTimed: true,
    isRecurring: true,
    fields: [
      ...["cron", "time_zone", "name", "paused", "gate", "verify", "deliver_to"],
      ...["overlap", "pause_after_failures", "until", "max_runs"],
    ],
    pauseAfterFailures: 5,
    needs: ' with "cron" (five fields) and, where another zone is meant, "time_zone"',
  },
};

export type TimedTaskType = Exclude<TaskType, "immediate">;

/** Returns whether tasks of this type wait for a time. */
export function isTimed(type: TaskType): type is TimedTaskType {
  return TASK_TYPE_RULES[type].isTimed;
}

/** Returns whether tasks of this type wait for their next time after each run. */
export function isRecurring(type: TaskType): boolean {
  return TASK_TYPE_RULES[type].isRecurring;
}
