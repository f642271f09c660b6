import { createParser } from "eventsource-parser";
import { ServiceError } from "../../../src/domain/error.ts";
import { clockField, type Column, field, idField, type Row } from "../../terminal/column.ts";
import { type AnyCommand, command, type Context, type OptionSpec, toFields } from "../command.ts";

const OPTIONS = {
  follow: { flags: "-f, --follow", about: "go on until interrupted", type: "flag" },
  after: { flags: "--after <seq>", about: "only what came behind this number", type: "int" },
  sessionKey: {
    flags: "--session-key <key>",
    completion: "session_key",
    about: "of this conversation",
    type: "text",
  },
  workerId: { flags: "--worker-id <id>", completion: "worker", about: "of this worker", type: "text" },
  taskId: { flags: "--task-id <id>", completion: "task", about: "of this task", type: "text" },
  kind: {
    flags: "--kind <kinds>",
    completion: "event_kind",
    about: "of these kinds, such as task.created,task.failed",
    type: "text",
    multiple: true,
  },
  actor: {
    flags: "--actor <actors>",
    about: "by these, such as user:ada,token:ci",
    type: "text",
    multiple: true,
  },
  pageSize: { flags: "--page-size <n>", about: "how many, up to 100", type: "int", default: 50 },
} as const satisfies Record<string, OptionSpec>;

const COLUMNS = [
  field("seq"),
  clockField("at"),
  field("kind"),
  field("actor"),
  field("session_key"),
  field("worker_id"),
  field("task_id"),
  field("execution_id"),
  field("message_id"),
  field("data"),
];

// A person reads what, when, about what and by whom: one id, that of the thing itself, and data as words.
const SHOWN: Column[] = [
  { ...field("seq"), kind: "fixed" },
  clockField("at"),
  { ...field("kind"), kind: "fixed" },
  {
    name: "about",
    kind: "id",
    value: (row) =>
      row[`${String(row.kind).split(".")[0]}_id`] || row.execution_id || row.task_id || row.message_id ||
      row.worker_id || row.session_key,
  },
  idField("actor"),
  { name: "data", value: (row) => formatData(row.data as Row) },
];

function formatData(data: Row): string {
  return Object.entries(data)
    .map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`)
    .join(", ");
}

export const eventsCommand: AnyCommand = command({
  name: "events",
  about: "Show what has happened lately, or follow what happens",
  options: OPTIONS,
  examples: ["events", "events -f --kind task.failed,execution.failed", "events --after 1200 --json"],
  async run(context) {
    const { client, out, note } = context;
    const { follow: goesOn, ...filters } = context.options;
    const query = toFields(filters);
    if (goesOn) return await follow(context, query);
    const headers = { accept: "application/json" };
    const { json, value, headers: answered } = await client.call("GET /api/events", { query, headers });
    await out.list(json, value, out.format === "table" ? SHOWN : COLUMNS, (row) => String(row.seq));
    if (answered.get("link") !== null) note(`there is more, use --after ${value.at(-1)?.seq}`);
  },
});

// A login goes on with another token when one ends, behind the last event that came (contract 9).
async function follow(context: Context, query: Record<string, string | number>): Promise<void> {
  const { client } = context;
  let after = query.after === undefined ? await findLatestSeq(context, query) : Number(query.after);
  while (true) {
    const { ended, seq } = await followOnce(context, { ...query, after });
    after = seq;
    if (ended === "token_expired" && client.renews) continue;
    const code = ended === "token_expired" || ended === "revoked" ? "unauthenticated" : "unavailable";
    throw new ServiceError(code, `The events ended: ${ENDS[ended] ?? "the connection was lost"}`);
  }
}

const ENDS: Record<string, string> = {
  shutdown: "shutdown",
  token_expired: "the token has expired; log in again",
  revoked: "the token is not valid any more",
};

/** The number behind which events are new. */
async function findLatestSeq({ client }: Context, query: Record<string, string | number>): Promise<number> {
  const headers = { accept: "application/json" };
  const { value } = await client.call("GET /api/events", { query: { ...query, page_size: 1 }, headers });
  return value.at(-1)?.seq ?? 0;
}

async function followOnce(
  { client, out }: Context,
  query: Record<string, string | number> & { after: number },
): Promise<{ ended: string; seq: number }> {
  const stream = await client.open("GET /api/events", { query });
  let ended = "";
  let seq = query.after;
  const parser = createParser({
    onEvent({ id, event, data }) {
      if (event === "end") ended = String(JSON.parse(data).reason);
      if (event !== "event") return;
      seq = Number(id);
      if (out.format === "json") out.line(data);
      else out.row(JSON.parse(data) as Row, out.format === "table" ? SHOWN : COLUMNS, "seq");
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of stream.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
  return { ended, seq };
}
