import type { Api } from "../../../src/http/app.ts";
import { ServiceError } from "../../../src/domain/call/error.ts";
import { isEndedTask } from "../../../src/domain/call/vocabulary.ts";
import type { BaseContext } from "../command.ts";
import { HoldNotice } from "./hold.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { retryRead } from "../../client/retry.ts";
import { Spinner } from "../../terminal/spinner.ts";
import { escapeControls } from "../../terminal/visible.ts";

type Task = Api["GET /api/tasks/:id"]["response"];
type Execution = Api["GET /api/executions/:id"]["response"];

// The server ends a wait after this time, so a longer wait takes several requests. A terminal shows the status more
// often.
const POLL_MAX_MS = 60_000;
const POLL_SHOWN_MS = 2_000;

interface WaitTarget {
  id: string;
  /** The number of a run. By default the end of the task, or of a schedule's current or next run. */
  runNo?: number | undefined;
  limitMs: number;
  /** If set, prints nothing at the timeout. */
  isQuiet?: boolean;
}

interface WaitResult {
  json: string;
  task: Task;
}

/** Waits for a task, across lost connections (contract 8.6). At the timeout, prints the task and throws Exit 124. */
export async function waitForTask(
  context: BaseContext,
  { id, runNo, limitMs, isQuiet = false }: WaitTarget,
): Promise<WaitResult> {
  const { client, out, io } = context;
  const hold = new HoldNotice(context);
  using spinner = new Spinner(io, out.style);
  const until = performance.now() + limitMs;
  const nextStep = `The work continues: svc ctl task wait ${id}${
    runNo === undefined ? "" : ` --run ${runNo}`
  }`;
  const bounds = { signal: io.signal, nextStep };
  const withinMs = Math.min(client.reconnectMs, limitMs);
  const { value: before } = await retryRead(
    () => client.call("GET /api/tasks/:id", { params: { id } }),
    { ...bounds, withinMs },
  );
  spinner.show(`task ${before.status}`);
  let looks = 0;
  while (true) {
    const left = Math.max(0, until - performance.now());
    // The first look is early, so that work on hold is reported soon in a pipe, too.
    const isEarly = looks++ < 2 || io.errIsTerminal;
    const timeout_ms = Math.round(Math.min(left, isEarly ? POLL_SHOWN_MS : POLL_MAX_MS));
    const query = { timeout_ms, ...(runNo === undefined ? {} : { run_no: runNo }) };
    const { json, value: task } = await retryRead(
      () => client.call("GET /api/tasks/:id/wait", { params: { id }, query }),
      { ...bounds, withinMs: Math.min(client.reconnectMs, left) },
    );
    const isHeld = await hold.show(task, () => spinner.clear());
    spinner.show(isHeld ? "on hold" : `task ${task.status}`);
    if (hasEnded(task, before, runNo)) return { json, task };
    if (performance.now() < until) continue;
    spinner.stop();
    if (!isQuiet) out.object(json, task);
    const why = task.reason === "" ? "" : `: ${task.reason}`;
    throw new Exit(EXIT.timedOut, `task ${id} is still ${task.status}${why}`);
  }
}

function hasEnded(task: Task, before: Task, runNo: number | undefined): boolean {
  if (isEndedTask(task.status)) return true;
  if (runNo !== undefined) {
    return task.run_no > runNo || task.run_no === runNo && task.status === "scheduled";
  }
  return task.type === "scheduled" && task.status === "scheduled" &&
    (task.run_no > before.run_no || before.status === "running" || before.status === "pending");
}

/** Returns the latest execution of a task, or null if it never ran. */
export async function findExecution(
  { client, io }: BaseContext,
  task: Task,
): Promise<{ json: string; value: Execution } | null> {
  const { execution_id: id } = task;
  if (id === null) return null;
  const bounds = {
    signal: io.signal,
    withinMs: client.reconnectMs,
    nextStep: `See: svc ctl execution get ${id}`,
  };
  return await retryRead(() => client.call("GET /api/executions/:id", { params: { id } }), bounds);
}

/** Prints only the result of a run (contract 8.10). */
export function printResult(
  { out, io }: BaseContext,
  { json, value }: { json: string; value: Execution },
): void {
  if (out.format === "json") return out.line(json);
  if (out.format === "ids") return out.line(value.id);
  if (value.result !== "") out.line(io.outIsTerminal ? escapeControls(value.result) : value.result);
}

/** Throws Exit 8 unless this run of a task completed, even if a later run is active (contract 8.9). */
export async function throwUnlessRunDone(context: BaseContext, task: Task, runNo: number): Promise<void> {
  const execution = await findExecution(context, task).catch(ignoreMissing);
  const run = execution?.value;
  // A run that was cancelled before its start, or deleted since, has no execution.
  if (run === undefined || run.run_no !== runNo) return throwUnlessCompleted(task);
  if (run.status === "completed") return;
  const why = [run.failure, run.error].filter((words) => words !== "").join(": ");
  throw new Exit(EXIT.awaitedFailed, `run ${runNo} of task ${task.id} ${run.status}: ${why}`);
}

// A caller may be allowed to read tasks but not executions, and retention deletes old executions.
function ignoreMissing(error: unknown): null {
  if (error instanceof ServiceError && ["forbidden", "not_found"].includes(error.code)) return null;
  throw error;
}

/**
 * Throws Exit 8 unless the task, or the latest run of a schedule, completed or was skipped by its gate (contract 6.5,
 * contract 15).
 */
export function throwUnlessCompleted(task: Task): void {
  if (task.status === "completed") return;
  if (task.status === "scheduled") {
    if (task.last_status === "completed" || task.last_status === "") return;
    throw new Exit(EXIT.awaitedFailed, `the run of task ${task.id} ${task.last_status}: ${task.last_error}`);
  }
  const why = task.reason === "" ? "" : `: ${task.reason}`;
  throw new Exit(EXIT.awaitedFailed, `task ${task.id} ${task.status}${why}`);
}
