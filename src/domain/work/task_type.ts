import type { TaskType } from "../call/vocabulary.ts";

/** What tasks of one type are. Everything that depends on the type of a task reads it here. */
interface TaskTypeRules {
  /** Waits for a time: it can be changed, paused and run by hand. */
  isTimed: boolean;
  /** Waits for its next time after each run. */
  isRecurring: boolean;
  /** The fields that it may have besides those of every task. */
  fields: readonly string[];
  /** How many failures in a row pause it, unless it says otherwise; 0: never. */
  pauseAfterFailures: number;
  /** What a plan of the bee has to give, in words for its prompt. */
  needs: string;
}

/** The rules of each type (interface 4.2, task create; contract 13, contract 15). */
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

/** The types of tasks that wait for a time. */
export type TimedTaskType = Exclude<TaskType, "immediate">;

/** Whether tasks of this type wait for a time. */
export function isTimed(type: TaskType): type is TimedTaskType {
  return TASK_TYPE_RULES[type].isTimed;
}

/** Whether tasks of this type wait for their next time after each run. */
export function isRecurring(type: TaskType): boolean {
  return TASK_TYPE_RULES[type].isRecurring;
}
