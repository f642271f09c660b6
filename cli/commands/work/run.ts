import { usageError } from "../../terminal/exit.ts";
import { readTextArgument } from "../../terminal/input_text.ts";
import { type AnyCommand, type BaseContext, command, option, toFields } from "../command.ts";
import { parseDuration, parseTimeout, TIMEOUT } from "../duration.ts";
import { expandCron, refuseCancelled } from "./cron.ts";
import { TIME_ZONE } from "./schedule_settings.ts";
import { IDEMPOTENCY_KEY, toHeaders } from "./task_batch.ts";
import { findExecution, printResult, throwUnlessCompleted, waitForTask } from "./task_wait.ts";

export const group: AnyCommand = command({
  name: "run",
  about: "Run one instruction and print the answer. The exit code reports the outcome",
  args: ["worker", "text|-"],
  refs: { worker: "worker" },
  options: {
    in: option.text("--in <duration>", "run after this long, e.g. 10m"),
    at: option.time("--at <time>", "run at this time, at least 5 s ahead"),
    cron: option.text("--cron <expression>", "run on a schedule with five fields and print the task"),
    timeZone: TIME_ZONE,
    session: option.text("--session <key>", "conversation to continue, or a name for a new one", {
      completion: "session_key",
    }),
    idempotencyKey: IDEMPOTENCY_KEY,
    wait: option.flag("--no-wait", "print the task without waiting for the answer"),
    timeout: TIMEOUT,
  },
  examples: [
    "run Ada 'Sum up the day'",
    "run Ada --in 10m --no-wait 'Remind me of the tea'",
    "run Ada --cron '0 9 * * 1' --time-zone UTC 'Plan the week'",
    "run Ada - < question.txt",
  ],
  async run(context) {
    const { client, out, args: [worker = "", given = ""], options, io, reportId } = context;
    const instruction = await readTextArgument(io, given, "text");
    const limitMs = parseTimeout(options.timeout, Infinity);
    const body = {
      message_id: await findMessageId(context, options.session),
      worker_id: worker,
      instruction,
      ...parseSchedule(options),
    };
    const headers = toHeaders(options.idempotencyKey);
    const { json, value } = await client.call("POST /api/tasks", { body, headers });
    refuseCancelled(context, json, value, "task");
    if (options.wait === false || options.cron !== undefined) return out.object(json, value);
    reportId("accepted", value.id);
    const { task } = await waitForTask(context, { id: value.id, limitMs, isQuiet: true });
    const execution = await findExecution(context, task);
    if (execution !== null) printResult(context, execution);
    throwUnlessCompleted(task);
  },
});

// A task belongs to a message. Any text as its ID creates a conversation of that name.
async function findMessageId({ client }: BaseContext, session: string | undefined): Promise<string> {
  if (session === undefined) return `run-${crypto.randomUUID()}`;
  const query = { session_key: session, page_size: 1 };
  const [latest] = (await client.call("GET /api/messages/inbound", { query })).value;
  return latest?.id ?? session;
}

interface ScheduleFlags {
  in: string | undefined;
  at: number | undefined;
  cron: string | undefined;
  timeZone: string | undefined;
}

function parseSchedule({ in: delay, at, cron, timeZone }: ScheduleFlags) {
  if ([delay, at, cron].filter((one) => one !== undefined).length > 1) {
    throw usageError("specify only one of --in, --at and --cron");
  }
  if (timeZone !== undefined && cron === undefined) throw usageError("--time-zone requires --cron");
  if (cron !== undefined) {
    return { type: "scheduled" as const, cron: expandCron(cron), ...toFields({ timeZone }) };
  }
  const time = at ?? (delay === undefined ? undefined : Date.now() + parseDuration(delay, "--in", 0));
  return time === undefined
    ? { type: "immediate" as const }
    : { type: "countdown" as const, scheduled_at: time };
}
