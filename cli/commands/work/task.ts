import { TASK_STATUSES, TASK_TYPES } from "../../../src/domain/vocabulary.ts";
import { field, idField, statusField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type Context, toFields } from "../command.ts";
import { parseTimeout, TIMEOUT } from "../duration.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";
import { transitionCommand } from "../transition.ts";
import { readText } from "../../terminal/prompt.ts";
import { createRunNowCommand, waitAndPrintTask } from "./run_now.ts";
import { createBatch } from "./task_batch.ts";
import { findExecution, throwUnlessCompleted, waitForTask } from "./task_wait.ts";

// What the server takes as text (contract 1).
const INSTRUCTION_MAX_BYTES = 256 * 1024;

const COLUMNS = [
  idField(),
  statusField(),
  field("type"),
  idField("worker_id"),
  timeField("next_run_at"),
  field("cron"),
  statusField("last_status"),
  field("reason"),
  field("instruction"),
];

export const taskCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    endpoint: "GET /api/tasks",
    columns: COLUMNS,
    about: "List tasks of a session, a message or a worker, newest first",
    options: {
      sessionKey: {
        flags: "--session-key <key>",
        completion: "session_key",
        about: "of this conversation",
        type: "text",
      },
      messageId: {
        flags: "--message-id <id>",
        completion: "message",
        about: "of this message; not together with --session-key",
        type: "text",
      },
      workerId: {
        flags: "--worker-id <id>",
        completion: "worker",
        ref: "worker",
        about: "of this worker",
        type: "text",
      },
      status: {
        flags: "--status <statuses>",
        about: "in one of these",
        type: "text",
        choices: TASK_STATUSES,
        multiple: true,
      },
      type: {
        flags: "--type <types>",
        about: "of one of these",
        type: "text",
        choices: TASK_TYPES,
        multiple: true,
      },
      ...pageOptions(100),
    },
    examples: [
      "task list --worker-id $id --status pending,running",
      "task list --session-key local:$session",
    ],
    check({ sessionKey, messageId, workerId }) {
      if (sessionKey === undefined && messageId === undefined && workerId === undefined) {
        throw usageError("one of --session-key, --message-id and --worker-id is needed");
      }
      if (sessionKey !== undefined && messageId !== undefined) {
        throw usageError("--session-key and --message-id exclude each other");
      }
    },
  }),
  command({
    name: "get",
    about: "Show a task",
    args: ["id"],
    refs: { id: "task" },
    options: {},
    examples: ["task get 01a1fd23-4c79-764a-afab-047dd52450e4"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/tasks/:id", { params: { id } });
      out.object(json, value);
    },
  }),
  command({
    name: "create",
    about: "Give a task to a worker, past the coordinator",
    options: {
      messageId: {
        flags: "--message-id <id>",
        completion: "message",
        about: "the message that it belongs to; any text for a script's own task",
        type: "text",
        required: true,
        unless: "--batch",
      },
      workerId: {
        flags: "--worker-id <id>",
        completion: "worker",
        ref: "worker",
        about: "who does it",
        type: "text",
        required: true,
        unless: "--batch",
      },
      instruction: {
        flags: "--instruction <text>",
        about: "what to do; - reads it from standard input",
        type: "text",
        required: true,
        unless: "--batch",
      },
      type: {
        flags: "--type <type>",
        about: "when it is to run",
        type: "text",
        choices: TASK_TYPES,
        required: true,
        unless: "--batch",
      },
      scheduledAt: {
        flags: "--scheduled-at <time>",
        about: "for countdown, such as +10m; at least 5 s ahead",
        type: "time",
        unless: "--batch",
      },
      cron: {
        flags: "--cron <expression>",
        about: "five fields, for scheduled",
        type: "text",
        allowEmpty: true,
        unless: "--batch",
      },
      timeZone: {
        flags: "--time-zone <zone>",
        completion: "time_zone",
        about: "in which cron is read, such as Europe/Berlin",
        type: "text",
        unless: "--batch",
      },
      idempotencyKey: {
        flags: "--idempotency-key <key>",
        about: "the same key makes one task or one batch, however often it is sent",
        type: "text",
      },
      batch: {
        flags: "--batch <file>",
        about:
          "up to 500 tasks, one JSON object a line as in the API, all or none; - reads stdin; prints their ids in order",
        type: "text",
      },
      wait: {
        flags: "--wait",
        about: "wait until it has ended; its outcome is the exit code",
        type: "flag",
        unless: "--batch",
      },
      timeout: { ...TIMEOUT, unless: "--batch" },
    },
    examples: [
      "task create --message-id nightly --worker-id $id --type immediate --instruction 'Sum up the day' --wait",
      "task create --message-id weekly --worker-id $id --type scheduled --cron '0 9 * * 1' --instruction 'Plan the week'",
      "task create --batch tasks.jsonl",
    ],
    async run(context) {
      const { client, out, options, io, reportId: tell } = context;
      const { wait, timeout, batch, idempotencyKey: key, ...fields } = options;
      if (batch !== undefined) return await createBatch(context as unknown as Context, batch, key);
      if (fields.instruction === "-") {
        fields.instruction = (await readText(io, INSTRUCTION_MAX_BYTES, "--instruction -")).replace(
          /[\r\n]+$/,
          "",
        );
        if (fields.instruction.trim() === "") {
          throw usageError("--instruction -: there was no text on standard input");
        }
      }
      const limit = parseTimeout(timeout, Infinity);
      if (timeout !== undefined && !wait) throw usageError("--timeout goes with --wait");
      const headers = key === undefined ? {} : { "idempotency-key": key };
      const { json, value } = await client.call("POST /api/tasks", { body: toFields(fields), headers });
      if (value.status === "cancelled") {
        out.object(json, value);
        throw new Exit(EXIT.awaitedFailed, `the task is cancelled: ${value.reason}`);
      }
      if (!wait) return out.object(json, value);
      tell("accepted", value.id);
      await waitAndPrintResult(context, value.id, limit);
    },
  }),
  transitionCommand({
    name: "cancel",
    about: "Cancel a pending or scheduled task",
    ref: "task",
    endpoint: "POST /api/tasks/:id/cancel",
    examples: ["task cancel 01a1fd23-4c79-764a-afab-047dd52450e4"],
  }),
  createRunNowCommand("task", "Run a scheduled task now; its schedule stays as it is"),
  command({
    name: "wait",
    about:
      "Wait until a task has ended, a schedule until its current or next run has; its outcome is the exit code",
    args: ["id"],
    refs: { id: "task" },
    options: {
      run: {
        flags: "--run <n>",
        about: "until this run has ended; its number is the task's run_no",
        type: "int",
      },
      timeout: TIMEOUT,
    },
    examples: ["task wait --timeout 30s 01a1fd23-4c79-764a-afab-047dd52450e4"],
    async run(context) {
      const { args: [id = ""], options: { run, timeout } } = context;
      await waitAndPrintTask(context, id, parseTimeout(timeout, Infinity), runNumber(run));
    },
  }),
];

// The task, and what its run answered; with --json the execution (contract 8.10).
async function waitAndPrintResult(context: Context, id: string, limitMs: number): Promise<void> {
  const { out } = context;
  const { json, task } = await waitForTask(
    context,
    { id, limitMs },
    (late) => out.object(late.json, late.task),
  );
  const execution = await findExecution(context, task);
  if (execution === null) out.object(json, task);
  else out.object(execution.json, { ...task, result: execution.value.result });
  throwUnlessCompleted(task);
}

function runNumber(given: number | undefined): number | undefined {
  if (given !== undefined && given < 1) throw usageError("--run must be at least 1");
  return given;
}
