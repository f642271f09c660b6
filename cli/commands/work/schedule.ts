import { TASK_STATUSES } from "../../../src/domain/vocabulary.ts";
import { field, idField, statusField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec, toFields } from "../command.ts";
import { parseDuration } from "../duration.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { listCommand, pageOptions } from "../list.ts";
import { transitionCommand } from "../transition.ts";
import { createRunNowCommand } from "./run_now.ts";
import { buildSettings, SETTINGS } from "./schedule_settings.ts";

const COLUMNS = [
  idField(),
  field("name"),
  statusField(),
  timeField("next_run_at"),
  field("cron"),
  idField("worker_id"),
  field("last_status"),
  field("failures_in_row"),
  field("paused"),
  field("reason"),
  field("instruction"),
];

const WORKER = {
  flags: "--worker <worker>",
  completion: "worker",
  ref: "worker",
  about: "who does it: id or name",
  type: "text",
} as const satisfies OptionSpec;

const WHEN = {
  cron: { flags: "--cron <expression>", about: "five fields", type: "text" },
  at: { flags: "--at <time>", about: "once, at this time", type: "time" },
} as const satisfies Record<string, OptionSpec>;

function setting(name: string, about: string, paused: boolean): AnyCommand {
  return command({
    name,
    about,
    args: ["id"],
    refs: { id: "task" },
    options: {},
    examples: [`schedule ${name} 01a1fd23-4c79-764a-afab-047dd52450e4`],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("PUT /api/tasks/:id", { params: { id }, body: { paused } });
      out.object(json, value);
    },
  });
}

export const scheduleCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    endpoint: "GET /api/schedules",
    columns: COLUMNS,
    about: "List schedules and countdowns, soonest first",
    options: {
      status: {
        flags: "--status <statuses>",
        about: "in one of these",
        type: "text",
        choices: TASK_STATUSES,
        multiple: true,
      },
      workerId: {
        flags: "--worker-id <id>",
        completion: "worker",
        ref: "worker",
        about: "of this worker",
        type: "text",
      },
      paused: { flags: "--paused", about: "only paused ones", type: "flag" },
      failing: { flags: "--failing", about: "only those whose latest runs failed", type: "flag" },
      ...pageOptions(100),
    },
    examples: ["schedule list", "schedule list --failing"],
  }),
  command({
    name: "get",
    about: "Show a schedule",
    args: ["id"],
    refs: { id: "task" },
    options: {},
    examples: ["schedule get 01a1fd23-4c79-764a-afab-047dd52450e4"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/tasks/:id", { params: { id } });
      out.object(json, value);
    },
  }),
  command({
    name: "create",
    about: "Make a schedule, or a task that runs once at its time",
    options: {
      worker: { ...WORKER, required: true },
      instruction: { flags: "--instruction <text>", about: "what to do", type: "text", required: true },
      ...WHEN,
      in: { flags: "--in <duration>", about: "once, after so long, such as 10m", type: "text" },
      messageId: {
        flags: "--message-id <id>",
        completion: "message",
        about: "the message that it belongs to; any text for a script's own, 'schedule' without it",
        type: "text",
      },
      ...SETTINGS,
      paused: { flags: "--paused", about: "paused until it is resumed", type: "flag" },
    },
    examples: [
      "schedule create --worker Ada --instruction 'Sum up the week' --cron '0 9 * * 5' --name weekly",
      "schedule create --worker Ada --instruction 'Review what is new' --cron '*/10 * * * *' --paused",
    ],
    async run({ client, out, options }) {
      const { worker, instruction, cron, at, in: after, messageId = "schedule", paused, ...settings } =
        options;
      if ([cron, at, after].filter((one) => one !== undefined).length !== 1) {
        throw usageError("one of --cron, --at and --in is needed");
      }
      const scheduled_at = after === undefined ? at : Date.now() + parseDuration(after, "--in", 0);
      const when = cron === undefined
        ? { type: "countdown" as const, ...toFields({ scheduledAt: scheduled_at }) }
        : { type: "scheduled" as const, cron };
      const fields = { message_id: messageId, worker_id: worker, instruction, ...toFields({ paused }) };
      const body = { ...fields, ...when, ...buildSettings(settings) };
      const { json, value } = await client.call("POST /api/tasks", { body });
      out.object(json, value);
      if (value.status === "cancelled") {
        throw new Exit(EXIT.awaitedFailed, `the schedule is cancelled: ${value.reason}`);
      }
    },
  }),
  command({
    name: "update",
    about: "Change a schedule; what is not named stays as it is",
    args: ["id"],
    refs: { id: "task" },
    options: {
      worker: WORKER,
      instruction: { flags: "--instruction <text>", about: "what to do", type: "text" },
      ...WHEN,
      ...SETTINGS,
    },
    examples: ["schedule update 01a1fd23-4c79-764a-afab-047dd52450e4 --cron '0 7 * * 1-5'"],
    async run({ client, out, args: [id = ""], options: { worker, instruction, cron, at, ...settings } }) {
      const body = {
        ...toFields({ workerId: worker, instruction, cron, scheduledAt: at }),
        ...buildSettings(settings),
      };
      const { json, value } = await client.call("PUT /api/tasks/:id", { params: { id }, body });
      out.object(json, value);
    },
  }),
  setting("pause", "Pause a schedule: it does not fire until it is resumed", true),
  setting("resume", "Resume a schedule with its next time; what it missed is not caught up with", false),
  createRunNowCommand("schedule", "Run a schedule now, as it would run at its time"),
  command({
    name: "preview",
    about: "Show when a cron expression fires next, and what daylight saving does to it",
    args: ["cron"],
    options: {
      timeZone: SETTINGS.timeZone,
      count: { flags: "--count <n>", about: "how many times, up to 50", type: "int", default: 10 },
    },
    examples: ["schedule preview '30 2 * * *' --time-zone Europe/Berlin"],
    async run({ client, out, args: [cron = ""], options }) {
      const { json, value } = await client.call("GET /api/schedules/preview", {
        query: { cron, ...toFields(options) },
      });
      await out.list(json, value, [timeField("at"), field("local"), field("note")], (row) => String(row.at));
    },
  }),
  transitionCommand({
    name: "delete",
    about: "End a schedule for good; its executions stay",
    ref: "task",
    endpoint: "POST /api/tasks/:id/cancel",
    examples: ["schedule delete 01a1fd23-4c79-764a-afab-047dd52450e4"],
  }),
];
