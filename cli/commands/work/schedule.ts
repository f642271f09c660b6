import { TASK_STATUSES } from "../../../src/domain/call/vocabulary.ts";
import { field, timeField, toColumns } from "../../terminal/column.ts";
import { usageError } from "../../terminal/exit.ts";
import { type AnyCommand, option, toFields } from "../command.ts";
import { parseDuration } from "../duration.ts";
import { filterOption, pageOptions, requestCommand, resource, TEXT, WORKER_ID } from "../resource.ts";
import { expandCron, refuseCancelled } from "./cron.ts";
import { createRunNowCommand } from "./run_now.ts";
import { buildSettings, SETTINGS, TIME_ZONE } from "./schedule_settings.ts";

const schedule = resource("schedule", {
  arg: "id",
  ref: "schedule",
  example: "01a1fd23-4c79-764a-afab-047dd52450e4",
});

const WORKER = option.text("--worker-id, --worker <id|name>", "worker", {
  completion: "worker",
  ref: "worker",
});
const INSTRUCTION = option.text("--instruction <text>", "instruction for the worker");
const CRON = option.text("--cron <expression>", "cron expression with five fields");
const AT = option.time("--at <time>", "run once at this time");

export const group: AnyCommand[] = [
  schedule.list("List schedules and countdowns, soonest first", "GET /api/schedules", {
    columns: toColumns(
      "id name status next_run_at cron worker_id",
      field("last_status"),
      "failures_in_row paused reason instruction",
    ),
    options: {
      status: filterOption("--status <statuses>", "status", TASK_STATUSES),
      workerId: WORKER_ID,
      paused: option.flag("--paused", "only paused schedules"),
      text: TEXT,
      failing: option.flag("--failing", "only schedules whose latest runs failed"),
      ...pageOptions(100),
    },
    examples: ["schedule list", "schedule list --failing"],
  }),
  schedule.get("GET /api/tasks/:id"),
  schedule.create("Create a schedule, or a task that runs once at a set time", "POST /api/tasks", {
    options: {
      worker: { ...WORKER, required: true },
      instruction: { ...INSTRUCTION, required: true },
      cron: CRON,
      at: AT,
      in: option.text("--in <duration>", "run once after this long, e.g. 10m"),
      messageId: option.text(
        "--message-id <id>",
        "message to reply to, or a name for a new conversation (default schedule)",
        {
          completion: "message",
        },
      ),
      ...SETTINGS,
      paused: option.flag("--paused", "create it paused"),
    },
    examples: [
      "schedule create --worker Ada --instruction 'Sum up the week' --cron '0 9 * * 5' --name weekly",
      "schedule create --worker Ada --instruction 'Review what is new' --cron '*/10 * * * *' --paused",
    ],
    input({ worker, instruction, cron, at, in: delay, messageId = "schedule", paused, ...settings }) {
      if ([cron, at, delay].filter((one) => one !== undefined).length !== 1) {
        throw usageError("specify exactly one of --cron, --at and --in");
      }
      const scheduledAt = delay === undefined ? at : Date.now() + parseDuration(delay, "--in", 0);
      return {
        message_id: messageId,
        worker_id: worker,
        instruction,
        ...toFields({ paused }),
        ...(cron === undefined
          ? { type: "countdown" as const, ...toFields({ scheduledAt }) }
          : { type: "scheduled" as const, cron: expandCron(cron) }),
        ...buildSettings(settings),
      };
    },
    before: (json, value, context) => refuseCancelled(context, json, value, "schedule"),
  }),
  schedule.verb("update", "Change the given fields of a schedule", "PUT /api/tasks/:id", {
    options: { worker: WORKER, instruction: INSTRUCTION, cron: CRON, at: AT, ...SETTINGS },
    examples: ["schedule update 01a1fd23-4c79-764a-afab-047dd52450e4 --cron '0 7 * * 1-5'"],
    input: ({ worker, instruction, cron, at, ...settings }) => ({
      ...toFields({ workerId: worker, instruction, cron: expandCron(cron), scheduledAt: at }),
      ...buildSettings(settings),
    }),
  }),
  schedule.verb("pause", "Pause a schedule until you resume it", "PUT /api/tasks/:id", {
    input: () => ({ paused: true }),
  }),
  schedule.verb(
    "resume",
    "Resume a schedule at its next time. Missed runs are skipped",
    "PUT /api/tasks/:id",
    {
      input: () => ({ paused: false }),
    },
  ),
  createRunNowCommand("schedule", "Run a schedule now"),
  requestCommand({
    name: "preview",
    about: "Show the next run times of a cron expression, including daylight saving",
    endpoint: "GET /api/schedules/preview",
    args: ["cron"],
    options: {
      timeZone: TIME_ZONE,
      count: option.int("--count <n>", "number of times, at most 50", { default: 10 }),
    },
    examples: ["schedule preview '30 2 * * *' --time-zone Europe/Berlin"],
    input: (options, { args: [cron = ""] }) => ({ cron: expandCron(cron), ...toFields(options) }),
    columns: toColumns(timeField("at"), "local note"),
    id: (row) => String(row.at),
  }),
  schedule.delete("End a schedule permanently. Its executions stay", "POST /api/tasks/:id/cancel", {
    id: (row) => String(row.id),
    loss: "It does not run again. Its executions stay.",
  }),
];
