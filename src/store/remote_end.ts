// running -> completed on runners: runs that nothing is unusual about, many of them in one statement each
import { BELL } from "../base/bells.ts";
import { guardedRows, type Statement } from "./database.ts";
import { endExecutions, type InstantRun } from "./instant_run.ts";

/** A run of a runner that is over. */
interface EndedRemoteRun extends Omit<InstantRun, "targets"> {
  epoch: number;
}

/**
 * Everything by which runs of runners are completed: their leases, executions, logs and tasks. Guarded by all of it: each run has its lease,
 * has reported nothing and asked nothing, and its task is immediate and goes on with it.
 */
export function endRemoteRuns(runs: readonly EndedRemoteRun[], now: number): Statement[] {
  const leases = runs.map(({ execution, epoch }) => [execution.execution_id, epoch]);
  const tasks = runs.map(({ execution }) => [execution.task_id, execution.execution_id]);
  return [
    ...guardedRows(runs.length, {
      sql: `update remote_run
        set lease_until = null, reported = 1
        from json_each(?) as one
        where remote_run.execution_id = one.value ->> 0 and epoch = one.value ->> 1 and lease_until > 0 and events = 0
          and not exists (
            select 1 from question where execution_id <> '' and execution_id = remote_run.execution_id)`,
      args: [JSON.stringify(leases)],
      bell: BELL.dispatcher,
    }),
    ...endExecutions(runs, now),
    ...guardedRows(runs.length, {
      sql: `update task
        set status = 'completed', reason = '', next_run_at = null, due_at = null, queued_at = null, updated_at = ?
        from json_each(?) as one
        where task.id = one.value ->> 0 and task.status = 'running' and task.type = 'immediate'
          and task.execution_id = one.value ->> 1`,
      args: [now, JSON.stringify(tasks)],
    }),
  ];
}
