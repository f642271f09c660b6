/** Ids of the objects that a run belongs to, or "". A run of the bee has no worker and no task. */
export interface RunKeys {
  session_key: string;
  worker_id: string;
  task_id: string;
  /** The execution. For the bee its bee run, which the API lists as a system execution. */
  execution_id: string;
  message_id: string;
}

/** A run of an engine. The code that claims the work creates it once and passes it on. */
export interface RunIdentity extends RunKeys {
  attempt: number;
  /** SVC_RUN_ID, which marks every process of the run. */
  run_id: string;
}

export function pickRunKeys({ session_key, worker_id, task_id, execution_id, message_id }: RunKeys): RunKeys {
  return { session_key, worker_id, task_id, execution_id, message_id };
}
