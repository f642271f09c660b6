import { formatChangeCounts } from "../../../src/domain/work/change_counts.ts";
import type { DiffStat } from "../../../src/http/app.ts";
import { ServiceError } from "../../../src/domain/call/error.ts";
import { EXECUTION_STATUSES, FAILURES, isEndedExecution } from "../../../src/domain/call/vocabulary.ts";
import { toColumns } from "../../terminal/column.ts";
import { wantsColors } from "../../terminal/style.ts";
import { readTextArgument } from "../../terminal/input_text.ts";
import { escapeField } from "../../terminal/output.ts";
import { escapeLine } from "../../terminal/visible.ts";
import { type AnyCommand, type BaseContext, command, type Context, option, toFields } from "../command.ts";
import {
  confirmLoss,
  ENGINE_FILTER,
  filterOption,
  pageOptions,
  resource,
  TEXT,
  WORKER_ID,
  YES,
} from "../resource.ts";

const execution = resource("execution", {
  arg: "id",
  ref: "execution",
  example: "01a1fd23-4c7d-7750-a391-3a9041dee235",
});

const LOG_OPTIONS = {
  follow: option.flag("-f, --follow", "print new lines until the execution ends"),
  tail: option.int("--tail <n>", "print only the last lines"),
  raw: option.flag("--raw", "print the engine's own events, one JSON object per line"),
};

export const group: AnyCommand[] = [
  execution.list("List executions, newest first", "GET /api/executions", {
    columns: toColumns("id worker_name status failure engine started_at completed_at instruction"),
    options: {
      workerId: WORKER_ID,
      sessionId: option.text("--session-id <id>", "filter by session ID or key", {
        completion: "session_key",
      }),
      status: filterOption("--status <statuses>", "status", EXECUTION_STATUSES),
      failure: filterOption("--failure <kinds>", "failure", FAILURES),
      engine: ENGINE_FILTER,
      text: TEXT,
      startedFrom: option.time("--started-from <time>", "started at or after this time"),
      startedTo: option.time("--started-to <time>", "started at or before this time"),
      completedFrom: option.time("--completed-from <time>", "ended at or after this time"),
      completedTo: option.time("--completed-to <time>", "ended at or before this time"),
      ...pageOptions(100),
    },
    examples: [
      "execution list --status failed --completed-from -1d",
      "execution list --text 'no such report'",
      "execution list --worker Ada --page-size 10",
    ],
  }),
  execution.get("GET /api/executions/:id"),
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
  execution.verb("cancel", "End a run and all its processes", "POST /api/executions/:id/cancel"),
  execution.verb(
    "steer",
    "Send words to the agent of a running execution",
    "POST /api/executions/:id/steer",
    {
      args: ["id", "text|-"],
      examples: ["execution steer 01a1fd23-4c7d-7750-a391-3a9041dee235 'Only the tests, please'"],
      input: async (_options, { io, args: [, given = ""] }) => ({
        content: await readTextArgument(io, given, "text"),
      }),
    },
  ),
  command({
    name: "diff",
    about: "Print the changes of an execution in the repository of its worker",
    args: ["id"],
    refs: { id: "execution" },
    options: {
      stat: option.flag("--stat", "print the changed files and lines instead"),
      since: option.text("--since <run|base>", "changes of this run, or of its whole branch", {
        choices: ["run", "base"],
      }),
    },
    examples: [
      "execution diff 01a1fd23-4c7d-7750-a391-3a9041dee235",
      "execution diff --stat 01a1fd23-4c7d-7750-a391-3a9041dee235",
    ],
    run: printDiff,
  }),
  execution.verb("push", "Push the branch of an execution", "POST /api/executions/:id/push"),
  command({
    name: "discard",
    about: "Delete the branch of an execution, with the commits that were not pushed",
    args: ["id"],
    refs: { id: "execution" },
    options: { yes: YES },
    examples: ["execution discard 01a1fd23-4c7d-7750-a391-3a9041dee235"],
    async run(context) {
      const { client, out, args: [id = ""], options: { yes } } = context;
      const params = { id };
      if (!yes) await confirmDiscard(context, id);
      const { json, value } = await client.call("POST /api/executions/:id/discard", { params, body: {} });
      out.object(json, value);
    },
  }),
  execution.verb("retry", "Run an execution again as a new task", "POST /api/executions/:id/retry", {
    examples: [
      "execution retry 01a1fd23-4c7d-7750-a391-3a9041dee235",
      "execution list --status failed --text 'no such report' -q | xargs -rn1 svc ctl execution retry",
    ],
  }),
];

/** Prints a log. A followed log ends with its execution. Throws `unavailable` if the connection ends first. */
async function printLog(
  { client, out, args: [id = ""], options, io }: Context<typeof LOG_OPTIONS>,
): Promise<void> {
  const query = toFields(options);
  let printed = 0;
  let ended = false;
  while (true) {
    const response = await client.open("GET /api/executions/:id/logs", { params: { id }, query });
    const body = skipPrinted(printed, response.body?.pipeThrough(new TextDecoderStream()) ?? [], (count) => {
      printed += count;
    });
    // A pipe gets the log unchanged.
    if (!io.outIsTerminal) { for await (const text of body) out.raw(text); }
    else await printLines(body, io.env, (text) => out.raw(text));
    // A cache may keep only the log of an ended run (interface 4.1).
    const isWhole = response.headers.get("cache-control")?.includes("public") ?? false;
    if (query.follow !== true || isWhole || ended) return;
    ended = await hasEnded(client, id);
    // The run may have ended after the response did. The next response has the lines between.
    if (ended && query.tail === undefined) continue;
    if (ended) return;
    // A login continues with a new token (contract 9).
    if (!client.canRenew || query.tail !== undefined) {
      throw new ServiceError("unavailable", "Cannot follow the log: the connection ended. Try again.");
    }
    await new Promise((resolve) => setTimeout(resolve, FOLLOW_PAUSE_MS));
  }
}

interface DiffOptions {
  stat?: boolean | undefined;
  since?: string | undefined;
}

/** Prints a diff as it is, for `git apply`; control characters only into a pipe. */
async function printDiff(
  { client, out, args: [id = ""], options, io }: BaseContext & { options: DiffOptions },
): Promise<void> {
  const isStat = options.stat === true || out.format === "json";
  const query = { ...toFields(options) as { since?: "run" | "base" }, stat: isStat };
  const response = await client.open("GET /api/executions/:id/diff", { params: { id }, query });
  const text = await response.text();
  if (!isStat) {
    return out.raw(
      io.outIsTerminal ? text.split("\n").map((line) => escapeLine(line, false)).join("\n") : text,
    );
  }
  const stat: DiffStat = JSON.parse(text);
  if (out.format === "json") return out.raw(`${text}\n`);
  for (const { path, insertions, deletions } of stat.files) {
    const count = insertions === null ? "binary" : `+${insertions} -${deletions}`;
    out.raw(`${escapeLine(escapeField(path), false)}\t${count}\n`);
  }
  out.raw(`${stat.branch}: ${formatChangeCounts(stat)}\n`);
}

// Names what no other repository has.
async function confirmDiscard({ client, io }: BaseContext, id: string): Promise<void> {
  if (!io.inIsTerminal || !io.errIsTerminal) return;
  const query = { stat: true, since: "base" as const };
  const stat = await client.open("GET /api/executions/:id/diff", { params: { id }, query })
    .then(async (response) => await response.json() as DiffStat)
    .catch(() => null);
  const loss = stat === null
    ? "its branch with all changes that were not pushed"
    : `${stat.branch} (${formatChangeCounts(stat)})`;
  await confirmLoss({ io }, `Discard ${loss}? The worktree is deleted, too.`);
}

/** Prints a log line by line. The agent's colors stay on a terminal that shows colors. */
async function printLines(
  pieces: AsyncIterable<string> | Iterable<string>,
  env: Record<string, string>,
  print: (text: string) => void,
): Promise<void> {
  const isColored = wantsColors(true, env);
  let rest = "";
  for await (const piece of pieces) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    print(lines.map((line) => `${escapeLine(line.replace(/\r$/, ""), isColored)}\n`).join(""));
  }
  if (rest !== "") print(escapeLine(rest, isColored));
}

const FOLLOW_PAUSE_MS = 1_000;

/** Drops the characters that were printed before, and reports how many new characters there are. */
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

// A run of the coordinator is no execution: it has ended when its log has.
async function hasEnded(client: Context["client"], id: string): Promise<boolean> {
  try {
    const { value } = await client.call("GET /api/executions/:id", { params: { id } });
    return isEndedExecution(value.status);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "not_found") return true;
    throw error;
  }
}
