import { createId } from "../base/id.ts";
import type { EngineTask } from "../domain/workers/engine_task.ts";
import type { Task } from "../domain/work/task.ts";
import type { EngineChoice } from "../engine/fallback.ts";
import type { Statement } from "../store/db/database.ts";
import { insertExecution, type NewExecution } from "../store/work/execution.ts";
import { endGate, startGate, startOccurrence } from "../store/work/occurrence.ts";
import { claimTask, markGateRunning } from "../store/work/task_transitions.ts";
import type { WaitingTask } from "../store/work/task_queue.ts";

/** A claimed run that is ready to start. */
export interface Claim {
  execution: NewExecution;
  task: Pick<Task, "type" | "cron" | "time_zone" | "attempt" | "deliver_to"> & {
    /** JSON text of the check: the task's own, or the worker's. */
    verify: string;
  };
  /** Decides whether another engine could run the task. Absent on a runner. */
  needs?: EngineTask;
  workDir: string;
  /** Set when a runner has the run. */
  remote?: true;
}

/** Builds the execution of a waiting task, which is not stored yet. */
export function createExecution(
  task: WaitingTask,
  { choice, instruction, id: execution_id = createId() }: {
    choice: EngineChoice;
    instruction: string;
    /** The id that its launch has chosen. */
    id?: string | undefined;
  },
  now: number,
): NewExecution {
  const { id: task_id, session_key, worker_id, worker_name, message_id, attempt } = task;
  return {
    ...{ session_key, worker_id, task_id, message_id, worker_name },
    execution_id,
    attempt: attempt + 1,
    run_id: crypto.randomUUID(),
    session_id: session_key,
    ...choice,
    instruction,
    ...(task.has_repo === 0 ? {} : { tree_id: task.tree_id ?? createId() }),
    created_at: now,
  };
}

/** Builds the guarded statements that start a run. */
export function startRun(execution: NewExecution, type: Task["type"]): Statement[] {
  const { task_id, execution_id, created_at } = execution;
  return [
    ...claimTask(task_id, execution_id, created_at),
    insertExecution(execution),
    ...(type === "immediate" ? [] : [startOccurrence(execution)]),
  ];
}

/** Builds the guarded statements that start the gate of `execution`, which runs only if the gate passes (contract 15). */
export function startGateRun(execution: NewExecution): Statement[] {
  return [...startGate(execution), ...markGateRunning(execution.task_id, execution.created_at)];
}

/** Builds the guarded statements that start the run of a passed gate. */
export function startGatedRun(execution: NewExecution, now: number): Statement[] {
  return [
    ...endGate(execution, { to: "running", exit: 0, error: "" }, now),
    ...claimTask(execution.task_id, execution.execution_id, now),
    insertExecution(execution),
  ];
}
