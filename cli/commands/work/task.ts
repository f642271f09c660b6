import { AFTER_CONDITIONS, TASK_STATUSES, TASK_TYPES } from "../../../src/domain/call/vocabulary.ts";
import type { Client } from "../../client/client.ts";
import { resolveRef } from "../../client/resource_ref.ts";
import { field, statusField, toColumns } from "../../terminal/column.ts";
import { usageError } from "../../terminal/exit.ts";
import { readTextArgument } from "../../terminal/input_text.ts";
import { type AnyCommand, type BaseContext, command, option, toFields } from "../command.ts";
import { parseTimeout, TIMEOUT } from "../duration.ts";
import { filterOption, pageOptions, resource, SESSION_KEY, TEXT, WORKER_ID } from "../resource.ts";
import { expandCron, refuseCancelled } from "./cron.ts";
import { createRunNowCommand, waitAndPrintTask } from "./run_now.ts";
import { TIME_ZONE } from "./schedule_settings.ts";
import { createBatch, IDEMPOTENCY_KEY, toHeaders } from "./task_batch.ts";
import { formatTreeLine, orderAsTree } from "./task_tree.ts";
import { findExecution, throwUnlessCompleted, waitForTask } from "./task_wait.ts";

const task = resource("task", { arg: "id", ref: "task", example: "01a1fd23-4c79-764a-afab-047dd52450e4" });

const UNLESS_BATCH = { unless: "--batch" } as const;
const REQUIRED = { ...UNLESS_BATCH, required: true } as const;

export const group: AnyCommand[] = [
  task.list("List tasks of a conversation, a message or a worker, newest first", "GET /api/tasks", {
    columns: toColumns(
      "id status type worker_id next_run_at cron",
      statusField("last_status"),
      "reason",
      { ...field("instruction"), show: formatTreeLine },
    ),
    input: ({ tree: _tree, ...filter }) => toFields(filter),
    rows: (tasks, { tree }) => tree ? orderAsTree(tasks) : tasks,
    options: {
      sessionKey: SESSION_KEY,
      messageId: option.text("--message-id <id>", "filter by message", { completion: "message" }),
      workerId: WORKER_ID,
      after: option.text("--after <id>", "filter by the task that they wait for", {
        completion: "task",
        ref: "task",
      }),
      tree: option.flag("--tree", "show tasks below the task that they wait for"),
      status: filterOption("--status <statuses>", "status", TASK_STATUSES),
      type: filterOption("--type <types>", "type", TASK_TYPES),
      text: TEXT,
      ...pageOptions(100),
    },
    examples: [
      "task list --worker Ada --status pending,running",
      "task list --session-key local:$session",
      "task list --message-id nightly --tree",
    ],
    check({ sessionKey, messageId, workerId, after }) {
      if ([sessionKey, messageId, workerId, after].every((one) => one === undefined)) {
        throw usageError(
          "specify --session-key, --message-id, --worker-id or --after. `svc ctl queue list` lists all active tasks",
        );
      }
      if (sessionKey !== undefined && messageId !== undefined) {
        throw usageError("--session-key and --message-id cannot be used together");
      }
    },
  }),
  task.get("GET /api/tasks/:id"),
  command({
    name: "create",
    about: "Create a task for a worker, without the coordinator",
    options: {
      messageId: option.text(
        "--message-id <id>",
        "message to reply to, or a name for a new conversation",
        {
          completion: "message",
          ...REQUIRED,
        },
      ),
      workerId: { ...WORKER_ID, about: "worker", ...REQUIRED },
      instruction: option.text("--instruction <text>", "instruction; - reads stdin", REQUIRED),
      type: option.text("--type <type>", "when to run", { choices: TASK_TYPES, ...REQUIRED }),
      scheduledAt: option.time(
        "--scheduled-at <time>",
        "time of a countdown, e.g. +10m; at least 5 s ahead",
        {
          ...UNLESS_BATCH,
        },
      ),
      cron: option.text("--cron <expression>", "cron expression with five fields, for scheduled", {
        allowEmpty: true,
        ...UNLESS_BATCH,
      }),
      timeZone: { ...TIME_ZONE, ...UNLESS_BATCH },
      after: option.words(
        "--after <ids>",
        "tasks to wait for; their results are in the prompt",
        UNLESS_BATCH,
      ),
      afterWhen: option.text("--after-when <when>", "start after their success, or however they end", {
        choices: AFTER_CONDITIONS,
        ...UNLESS_BATCH,
      }),
      idempotencyKey: IDEMPOTENCY_KEY,
      batch: option.text("--batch <file>", "create up to 500 tasks, one JSON object per line; - reads stdin"),
      wait: option.flag("--wait", "wait for the task; the exit code reports the outcome", UNLESS_BATCH),
      timeout: { ...TIMEOUT, ...UNLESS_BATCH },
    },
    examples: [
      "task create --message-id nightly --worker Ada --type immediate --instruction 'Sum up the day' --wait",
      "task create --message-id weekly --worker Ada --type scheduled --cron '0 9 * * 1' --instruction 'Plan the week'",
      "task create --message-id nightly --worker Ada --type immediate --instruction 'Check it' --after 01a1fd23-4c79-764a-afab-047dd52450e4",
      "task create --batch tasks.jsonl",
    ],
    async run(context) {
      const { client, out, options, io, reportId } = context;
      const { wait, timeout, batch, idempotencyKey: key, after = [], ...fields } = options;
      if (batch !== undefined) return await createBatch(context, batch, key);
      fields.instruction = await readTextArgument(io, fields.instruction, "--instruction");
      const limitMs = parseTimeout(timeout, Infinity);
      if (timeout !== undefined && !wait) throw usageError("--timeout requires --wait");
      const headers = toHeaders(key);
      const { json, value } = await client.call("POST /api/tasks", {
        body: toFields({
          ...{ ...fields, cron: expandCron(fields.cron) },
          after: after.length === 0 ? undefined : await resolveTasks(client, after),
        }),
        headers,
      });
      refuseCancelled(context, json, value, "task");
      if (!wait) return out.object(json, value);
      reportId("accepted", value.id);
      await waitAndPrintResult(context, value.id, limitMs);
    },
  }),
  task.verb("cancel", "Cancel a pending or scheduled task", "POST /api/tasks/:id/cancel"),
  task.verb(
    "retry",
    "Run a failed or cancelled task again, with the tasks that its failure cancelled",
    "POST /api/tasks/:id/retry",
  ),
  createRunNowCommand("task", "Run a scheduled task now without changing its schedule"),
  command({
    name: "wait",
    about: "Wait for a task or a run of a schedule. The exit code reports the outcome",
    args: ["id"],
    refs: { id: "task" },
    options: {
      run: option.int("--run <n>", "number (run_no) of the run; by default the current or next one"),
      timeout: TIMEOUT,
    },
    examples: ["task wait --timeout 30s 01a1fd23-4c79-764a-afab-047dd52450e4"],
    async run(context) {
      const { args: [id = ""], options: { run, timeout } } = context;
      if (run !== undefined && run < 1) throw usageError("--run: must be at least 1");
      await waitAndPrintTask(context, id, parseTimeout(timeout, Infinity), run);
    },
  }),
];

async function resolveTasks(client: Client, refs: readonly string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const ref of refs) ids.push(await resolveRef(client, "task", ref));
  return ids;
}

// Prints the task with the result of its run, or with --json the execution (contract 8.10).
async function waitAndPrintResult(context: BaseContext, id: string, limitMs: number): Promise<void> {
  const { out } = context;
  const { json, task } = await waitForTask(context, { id, limitMs });
  const execution = await findExecution(context, task);
  if (execution === null) out.object(json, task);
  else out.object(execution.json, { ...task, result: execution.value.result });
  throwUnlessCompleted(task);
}
