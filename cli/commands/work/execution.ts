import { ServiceError } from "../../../src/domain/error.ts";
import { EXECUTION_STATUSES, isEndedExecution } from "../../../src/domain/vocabulary.ts";
import { field, idField, statusField, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type Context, type OptionSpec, toFields } from "../command.ts";
import { listCommand, pageOptions } from "../list.ts";
import { transitionCommand } from "../transition.ts";
import { wantsColors } from "../../terminal/style.ts";
import { escapeLine } from "../../terminal/visible.ts";

const COLUMNS = [
  idField(),
  field("worker_name"),
  statusField(),
  field("failure"),
  field("engine"),
  timeField("started_at"),
  timeField("completed_at"),
  field("instruction"),
];

const LOG_OPTIONS = {
  follow: { flags: "-f, --follow", about: "go on until the execution has ended", type: "flag" },
  tail: { flags: "--tail <n>", about: "only the last lines", type: "int" },
  raw: { flags: "--raw", about: "the engine's own events, one JSON object per line", type: "flag" },
} satisfies Record<string, OptionSpec>;

export const executionCommands: AnyCommand[] = [
  listCommand({
    name: "list",
    about: "List executions, newest first",
    endpoint: "GET /api/executions",
    columns: COLUMNS,
    options: {
      workerId: {
        flags: "--worker-id <id>",
        completion: "worker",
        ref: "worker",
        about: "of this worker",
        type: "text",
      },
      sessionId: {
        flags: "--session-id <id>",
        completion: "session_key",
        about: "of this session: its id, key or local session",
        type: "text",
      },
      status: {
        flags: "--status <status>",
        about: "in this status",
        type: "text",
        choices: EXECUTION_STATUSES,
        multiple: true,
      },
      startedFrom: { flags: "--started-from <time>", about: "started at or after", type: "time" },
      startedTo: { flags: "--started-to <time>", about: "started at or before", type: "time" },
      completedFrom: { flags: "--completed-from <time>", about: "ended at or after", type: "time" },
      completedTo: { flags: "--completed-to <time>", about: "ended at or before", type: "time" },
      ...pageOptions(100),
    },
    examples: ["execution list --status failed", "execution list --worker-id $id --page-size 10"],
  }),
  command({
    name: "get",
    about: "Show an execution",
    args: ["id"],
    refs: { id: "execution" },
    options: {},
    examples: ["execution get 01a1fd23-4c7d-7750-a391-3a9041dee235"],
    async run({ client, out, args: [id = ""] }) {
      const { json, value } = await client.call("GET /api/executions/:id", { params: { id } });
      out.object(json, value);
    },
  }),
  command({
    name: "logs",
    about: "Print the log of an execution",
    args: ["id"],
    refs: { id: "execution" },
    options: LOG_OPTIONS,
    examples: [
      "execution logs -f 01a1fd23-4c7d-7750-a391-3a9041dee235",
      "execution logs --raw 01a1fd23-4c7d-7750-a391-3a9041dee235 | jq .type",
    ],
    run: printLog,
  }),
  transitionCommand({
    name: "cancel",
    about: "End a run with its whole process tree",
    ref: "execution",
    endpoint: "POST /api/executions/:id/cancel",
    examples: ["execution cancel 01a1fd23-4c7d-7750-a391-3a9041dee235"],
  }),
  transitionCommand({
    name: "retry",
    about: "Do the same again: a new task for the same worker, which is printed",
    ref: "execution",
    endpoint: "POST /api/executions/:id/retry",
    examples: ["execution retry 01a1fd23-4c7d-7750-a391-3a9041dee235"],
  }),
];

/** Prints a log; one that is followed, until its execution has ended. Throws `unavailable` when its end cannot be waited for. */
async function printLog(
  { client, out, args: [id = ""], options, io }: Context<typeof LOG_OPTIONS>,
): Promise<void> {
  const query = toFields(options);
  let printed = 0;
  let over = false;
  while (true) {
    const response = await client.open("GET /api/executions/:id/logs", { params: { id }, query });
    const body = skipPrinted(printed, response.body?.pipeThrough(new TextDecoderStream()) ?? [], (count) => {
      printed += count;
    });
    // In a pipe it stays what it is.
    if (!io.outIsTerminal) { for await (const text of body) out.raw(text); }
    else await printLines(body, io.env, (text) => out.raw(text));
    // Only the log of an ended run may be kept by a cache (interface 4.1).
    const whole = response.headers.get("cache-control")?.includes("public") ?? false;
    if (query.follow !== true || whole || over) return;
    over = await hasEnded(client, id);
    // It may have ended after its answer did, with the token or the service: what it wrote between is in the next answer.
    if (over && query.tail === undefined) continue;
    if (over) return;
    // A login goes on with another token when one ends (contract 9).
    if (!client.renews || query.tail !== undefined) {
      throw new ServiceError("unavailable", "The log ended before its execution did; ask for it again");
    }
    await new Promise((resolve) => setTimeout(resolve, FOLLOW_PAUSE_MS));
  }
}

/** Prints a log as it comes, line by line, with the colours of the agent where colours are wanted. */
async function printLines(
  pieces: AsyncIterable<string> | Iterable<string>,
  env: Record<string, string>,
  print: (text: string) => void,
): Promise<void> {
  const coloured = wantsColors(true, env);
  let rest = "";
  for await (const piece of pieces) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    print(lines.map((line) => `${escapeLine(line.replace(/\r$/, ""), coloured)}\n`).join(""));
  }
  if (rest !== "") print(escapeLine(rest, coloured));
}

const FOLLOW_PAUSE_MS = 1_000;

/** A text without its first characters, which were printed before; tells how many more there were. */
async function* skipPrinted(
  known: number,
  texts: AsyncIterable<string> | Iterable<string>,
  onMore: (count: number) => void,
): AsyncGenerator<string> {
  let left = known;
  for await (const text of texts) {
    const more = text.slice(left);
    left -= text.length - more.length;
    if (more === "") continue;
    onMore(more.length);
    yield more;
  }
}

// A run of the coordinator is no execution, and has ended when its log has.
async function hasEnded(client: Context["client"], id: string): Promise<boolean> {
  try {
    const { value } = await client.call("GET /api/executions/:id", { params: { id } });
    return isEndedExecution(value.status);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "not_found") return true;
    throw error;
  }
}
