import type { Task } from "../domain/task.ts";
import type { NewExecution } from "../store/execution.ts";

/** A claimed run, ready to be executed. */
export interface Claim {
  execution: NewExecution;
  task: Pick<Task, "type" | "cron" | "time_zone" | "attempt" | "deliver_to"> & {
    /** JSON text of what checks its work: the task's own, or its worker's. */
    verify: string;
  };
  workDir: string;
}
