import { ServiceError } from "../../../src/domain/call/error.ts";
import type { Api } from "../../../src/http/app.ts";
import { Problem } from "../../client/transport.ts";
import { resolveRef } from "../../client/resource_ref.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { readInputFile } from "../../terminal/input_text.ts";
import { escapeControls } from "../../terminal/visible.ts";
import { type BaseContext, option } from "../command.ts";

// The limits of the server (contract 3, Task).
const TASK_BATCH_MAX = 500;
const TASK_BATCH_MAX_BYTES = 8 * 1024 * 1024;
const FLAG = "--batch";
const CANCELLED_SHOWN_MAX = 10;

/** `--idempotency-key` of commands that create tasks. */
export const IDEMPOTENCY_KEY = option.text(
  "--idempotency-key <key>",
  "create only once per key, even if repeated",
);

/** Returns the request headers for an idempotency key. */
export function toHeaders(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { "idempotency-key": key };
}

type Tasks = Api["POST /api/tasks/batch"]["body"]["tasks"];

/** The tasks of a batch, and the line number of each. */
interface Batch {
  tasks: Tasks;
  lines: number[];
}

/**
 * Creates the tasks of a file or stdin, one JSON object per line, all or none, and prints their IDs in order.
 * Throws a usage error for invalid input, and Exit 8 if a cron expression never fires.
 */
export async function createBatch(
  context: BaseContext,
  file: string,
  key: string | undefined,
): Promise<void> {
  const { client, io, out } = context;
  const { tasks, lines } = parseBatch(
    await readInputFile(io, file, { flag: FLAG, maxBytes: TASK_BATCH_MAX_BYTES }),
  );
  const ids = new Map<string, string>();
  for (const [at, task] of tasks.entries()) {
    const { worker_id: name } = task;
    if (typeof name !== "string") continue;
    const id = ids.get(name) ??
      await resolveRef(client, "worker", name).catch((error) => {
        throw nameLine(error, lines[at]);
      });
    ids.set(name, id);
    task.worker_id = id;
  }
  const { json, value } = await client
    .call("POST /api/tasks/batch", { body: { tasks }, headers: toHeaders(key) })
    .catch((error) => {
      throw error instanceof Problem ? nameFields(error, lines) : error;
    });
  if (out.format === "json") out.line(json);
  else for (const { id } of value.tasks) out.line(id);
  const cancelled = value.tasks.flatMap(({ status, reason }, at) =>
    status === "cancelled" ? [`line ${lines[at]}: ${escapeControls(reason)}`] : []
  );
  if (cancelled.length === 0) return;
  const more = cancelled.length > CANCELLED_SHOWN_MAX ? ["and more"] : [];
  throw new Exit(
    EXIT.awaitedFailed,
    [`${cancelled.length} tasks were cancelled:`, ...cancelled.slice(0, CANCELLED_SHOWN_MAX), ...more]
      .join("\n  "),
  );
}

/** Adds the line to an error about the worker of a task. Another error stays as it is. */
function nameLine(error: unknown, line: number | undefined): unknown {
  if (error instanceof Exit) return usageError(`line ${line}: ${error.message}`);
  if (!(error instanceof ServiceError) || error.code !== "not_found") return error;
  return new ServiceError(error.code, `line ${line}: ${error.message}`);
}

/** Replaces the server's names of the fields, such as `tasks.1.after.0`, by the line and the field. */
function nameFields(problem: Problem, lines: readonly number[]): Problem {
  const fields: { path: string }[] = JSON.parse(problem.json).errors ?? [];
  return problem.reworded(fields.reduce((said, { path }) => {
    const [, index, rest = ""] = /^tasks\.(\d+)(.*)$/.exec(path) ?? [];
    if (index === undefined) return said;
    const name = rest.split(".").filter((part) => part !== "" && !/^\d+$/.test(part)).join(".");
    return said.replace(`${path}: `, () => `line ${lines[Number(index)]}: ${name === "" ? "" : `${name}: `}`);
  }, problem.message));
}

function parseBatch(text: string): Batch {
  const batch: Batch = { tasks: [], lines: [] };
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    if (batch.tasks.length === TASK_BATCH_MAX) throw usageError(`${FLAG}: more than ${TASK_BATCH_MAX} tasks`);
    batch.tasks.push(parseTask(line, at + 1));
    batch.lines.push(at + 1);
  }
  if (batch.tasks.length === 0) throw usageError(`${FLAG}: no tasks. Write one JSON object per line.`);
  return batch;
}

// The server checks the fields and names the wrong one.
function parseTask(line: string, number: number): Tasks[number] {
  let task: unknown;
  try {
    task = JSON.parse(line);
  } catch {
    throw usageError(`${FLAG}: line ${number} is not JSON`);
  }
  if (task === null || typeof task !== "object" || Array.isArray(task)) {
    throw usageError(`${FLAG}: line ${number} is not a JSON object`);
  }
  return task as Tasks[number];
}
