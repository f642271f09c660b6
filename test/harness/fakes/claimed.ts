import { expect } from "vitest";
import type { Call } from "../../../src/api/call/call.ts";
import { createId } from "../../../src/base/id.ts";
import { endRun, STOPPED } from "../../../src/run/ending.ts";
import type { Database } from "../../../src/store/db/database.ts";
import {
  type ExecutionEnd,
  findRunGrant,
  insertExecution,
  startExecution,
} from "../../../src/store/work/execution.ts";
import { findTask } from "../../../src/store/work/task.ts";
import { claimTask } from "../../../src/store/work/task_transitions.ts";

/** The end of a run without a process. */
export type RunEnding = "completed" | "failed" | "lost" | "stopped" | "cancelled";

const RULES = { defaultZone: "UTC", maxAttempts: 3 };
const USAGE = { input_tokens: null, output_tokens: null, cost_usd: null };
const FAILURE = {
  completed: "",
  failed: "exit_code",
  cancelled: "cancelled",
  lost: "server_lost",
  stopped: "server_lost",
} as const;

/** A run that is only rows, claimed like the dispatcher does, without a process. */
export interface ClaimedRun {
  id: string;
  task: string;
  worker: string;
  session: string;
  depth: number;
}

/** Claims a pending task and starts its run. */
export async function claimRun(db: Database, taskId: string, now: number): Promise<ClaimedRun> {
  const task = await findTask(db, taskId);
  if (task === null) throw new Error("no such task");
  const execution_id = createId();
  const { worker_id, session_key, message_id } = task;
  const { won } = await db.write([
    ...claimTask(taskId, execution_id, now),
    insertExecution({
      worker_id,
      session_key,
      message_id,
      task_id: taskId,
      execution_id,
      worker_name: "w",
      session_id: "",
      engine: "echo",
      fallback_from: "",
      instruction: "x",
      attempt: task.attempt + 1,
      run_id: "",
      created_at: now,
    }),
    ...startExecution(execution_id, now),
  ]);
  expect(won).toBe(true);
  const row = await db.first<{ depth: number }>("select depth from task where id = ?", [taskId]);
  return { id: execution_id, task: taskId, worker: worker_id, session: session_key, depth: row?.depth ?? 0 };
}

/** Returns the API call context of the run's agent, with every scope. */
export async function buildCall(db: Database, run: ClaimedRun): Promise<Call> {
  const grant = await findRunGrant(db, run.id, await findAttempt(db, run.id));
  if (grant === null) throw new Error("the run has ended");
  const { scopes: _, ...binding } = grant;
  return {
    caller: { subject: `worker:${run.worker}`, scopes: ["*:*"], run: binding, person: null },
    findAccessEnd: () => Promise.resolve(null),
    idempotency: null,
    trace: "",
  };
}

/** Stores the end of the run like the executor or the rescuer. Returns whether it was the first. */
export async function endClaimedRun(
  db: Database,
  run: ClaimedRun,
  how: RunEnding,
  now: number,
): Promise<boolean> {
  const end: ExecutionEnd = {
    status: how === "completed" ? "completed" : "failed",
    session_id: "",
    result: "",
    error: how === "stopped" ? STOPPED : how,
    failure: FAILURE[how],
    exit_code: null,
    usage: USAGE,
  };
  const ended = {
    execution_id: run.id,
    task_id: run.task,
    worker_id: run.worker,
    worker_name: "w",
    engine: "echo",
    fallback_from: "",
    session_key: run.session,
    message_id: "m",
    attempt: await findAttempt(db, run.id),
  };
  return (await db.write(endRun(ended, end, await findTask(db, run.task), RULES, now))).won;
}

async function findAttempt(db: Database, id: string): Promise<number> {
  const row = await db.first<{ attempt: number }>("select attempt from execution where id = ?", [id]);
  return row?.attempt ?? 0;
}
