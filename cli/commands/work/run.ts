import { type AnyCommand, command, type Context } from "../command.ts";
import { parseDuration, parseTimeout, TIMEOUT } from "../duration.ts";
import { EXIT, Exit, usageError } from "../../terminal/exit.ts";
import { readText } from "../../terminal/prompt.ts";
import { findExecution, printResult, throwUnlessCompleted, waitForTask } from "./task_wait.ts";

// What the server takes as text (contract 1).
const INSTRUCTION_MAX_BYTES = 256 * 1024;

export const runCommand: AnyCommand = command({
  name: "run",
  about: "Let a worker do something and print its answer alone; its outcome is the exit code",
  args: ["worker", "text|-"],
  refs: { worker: "worker" },
  options: {
    in: { flags: "--in <duration>", about: "after so long, such as 10m", type: "text" },
    at: { flags: "--at <time>", about: "at a time; at least 5 s ahead", type: "time" },
    cron: {
      flags: "--cron <expression>",
      about: "on a schedule of five fields; prints the task",
      type: "text",
    },
    timeZone: {
      flags: "--time-zone <zone>",
      completion: "time_zone",
      about: "in which cron is read, such as Europe/Berlin",
      type: "text",
    },
    session: {
      flags: "--session <key>",
      completion: "session_key",
      about: "the conversation to go on with, of any name; else one of its own",
      type: "text",
    },
    idempotencyKey: {
      flags: "--idempotency-key <key>",
      about: "the same key makes one task, however often it is sent",
      type: "text",
    },
    wait: { flags: "--no-wait", about: "print the task and do not wait for its answer", type: "flag" },
    timeout: TIMEOUT,
  },
  examples: [
    "run Ada 'Sum up the day'",
    "run Ada --in 10m --no-wait 'Remind me of the tea'",
    "run Ada --cron '0 9 * * 1' --time-zone UTC 'Plan the week'",
    "run Ada - < question.txt",
  ],
  async run(context) {
    const { client, out, args: [worker = "", given = ""], options, io, reportId: tell } = context;
    const text = given === "-"
      ? (await readText(io, INSTRUCTION_MAX_BYTES, "-")).replace(/[\r\n]+$/, "")
      : given;
    if (text.trim() === "") throw usageError("the text must not be empty");
    const limitMs = parseTimeout(options.timeout, Infinity);
    const { idempotencyKey: key } = options;
    const body = {
      message_id: await findMessageId(context as unknown as Context, options.session),
      worker_id: worker,
      instruction: text,
      ...parseSchedule(options),
    };
    const headers = key === undefined ? {} : { "idempotency-key": key };
    const { json, value } = await client.call("POST /api/tasks", { body, headers });
    if (value.status === "cancelled") {
      out.object(json, value);
      throw new Exit(EXIT.awaitedFailed, `the task is cancelled: ${value.reason}`);
    }
    if (options.wait === false || options.cron !== undefined) return out.object(json, value);
    tell("accepted", value.id);
    const { task } = await waitForTask(context as unknown as Context, { id: value.id, limitMs }, () => {});
    const execution = await findExecution(context as unknown as Context, task);
    if (execution !== null) printResult(context as unknown as Context, execution);
    throwUnlessCompleted(task);
  },
});

// A task needs a message that it belongs to. Any text makes a conversation of that name.
async function findMessageId({ client }: Context, session: string | undefined): Promise<string> {
  if (session === undefined) return `run-${crypto.randomUUID()}`;
  const query = { session_key: session, page_size: 1 };
  const [latest] = (await client.call("GET /api/messages/inbound", { query })).value;
  return latest?.id ?? session;
}

/** When the task is to run, as fields of a request. Throws a usage error for times that exclude each other. */
function parseSchedule(
  { in: delay, at, cron, timeZone }: {
    in: string | undefined;
    at: number | undefined;
    cron: string | undefined;
    timeZone: string | undefined;
  },
) {
  if ([delay, at, cron].filter((one) => one !== undefined).length > 1) {
    throw usageError("--in, --at and --cron exclude each other");
  }
  if (timeZone !== undefined && cron === undefined) throw usageError("--time-zone goes with --cron");
  if (cron !== undefined) {
    return { type: "scheduled" as const, cron, ...(timeZone === undefined ? {} : { time_zone: timeZone }) };
  }
  const time = at ?? (delay === undefined ? undefined : Date.now() + parseDuration(delay, "--in", 0));
  return time === undefined
    ? { type: "immediate" as const }
    : { type: "countdown" as const, scheduled_at: time };
}
