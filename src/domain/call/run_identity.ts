/**
 * What a run belongs to, in the names of rows, journal and environment; "" for what it does not have. The bee has no worker
 * and no task.
 */
export interface RunKeys {
  session_key: string;
  worker_id: string;
  task_id: string;
  /** The execution; for the bee its bee run, which the API lists as a system execution. */
  execution_id: string;
  message_id: string;
}

/** One run of an engine. It is made once, by whoever claims the work, and passed on from there. */
export interface RunIdentity extends RunKeys {
  attempt: number;
  /** SVC_RUN_ID, which marks every process of the run. */
  run_id: string;
}

/** The keys alone, for a journal entry (contract 4, Journal). */
export function keysOf({ session_key, worker_id, task_id, execution_id, message_id }: RunKeys): RunKeys {
  return { session_key, worker_id, task_id, execution_id, message_id };
}
