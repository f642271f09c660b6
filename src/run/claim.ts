import { newId } from "../base/id.ts";
import type { Task } from "../domain/work/task.ts";
import type { Statement } from "../store/db/database.ts";
import { insertExecution, type NewExecution } from "../store/work/execution.ts";
import { endGate, startGate, startOccurrence } from "../store/work/occurrence.ts";
import { claimTask, noteGate } from "../store/work/task_transitions.ts";
import type { WaitingTask } from "../store/work/task_queue.ts";

/** A claimed run, ready to be executed. */
export interface Claim {
  execution: NewExecution;
  task: Pick<Task, "type" | "cron" | "time_zone" | "attempt" | "deliver_to"> & {
    /** JSON text of what checks its work: the task's own, or its worker's. */
    verify: string;
  };
  workDir: string;
  /** A runner has it. */
  remote?: true;
}

/** The run that a waiting task is about to get, which nobody has stored yet. */
export function executionOf(
  task: WaitingTask,
  { engine, instruction }: { engine: string; instruction: string },
  now: number,
): NewExecution {
  const { id: task_id, session_key, worker_id, worker_name, message_id, attempt } = task;
  return {
    ...{ session_key, worker_id, task_id, message_id, worker_name },
    execution_id: newId(),
    attempt: attempt + 1,
    run_id: crypto.randomUUID(),
    session_id: session_key,
    engine,
    instruction,
    created_at: now,
  };
}

/** The statements by which a run begins. Guarded. */
export function startRun(execution: NewExecution, type: Task["type"]): Statement[] {
  const { task_id, execution_id, created_at } = execution;
  return [
    ...claimTask(task_id, execution_id, created_at),
    insertExecution(execution),
    ...(type === "immediate" ? [] : [startOccurrence(execution)]),
  ];
}

/** The statements by which a gate begins, for the run that it may become (contract 15). Guarded. */
export function askGate(execution: NewExecution): Statement[] {
  return [...startGate(execution), ...noteGate(execution.task_id, execution.created_at)];
}

/** The statements by which the run begins that its gate lets through. Guarded. */
export function passGate(execution: NewExecution, now: number): Statement[] {
  return [
    ...endGate(execution, { to: "running", exit: 0, error: "" }, now),
    ...claimTask(execution.task_id, execution.execution_id, now),
    insertExecution(execution),
  ];
}
