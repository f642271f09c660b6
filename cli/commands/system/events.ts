import { createParser } from "eventsource-parser";
import { ServiceError } from "../../../src/domain/call/error.ts";
import { clockField, type Column, field, idField, type Row } from "../../terminal/column.ts";
import { type AnyCommand, type BaseContext, command, option, toFields } from "../command.ts";
import { SESSION_KEY, WORKER_ID } from "../resource.ts";

/** `--after` of the journal. */
export const AFTER = option.int("--after <seq>", "only events after this sequence number");
/** `--actor` of the journal. */
export const ACTOR = option.text("--actor <actors>", "filter by actor, e.g. user:ada,token:ci", {
  multiple: true,
});

const COLUMNS = [
  field("seq"),
  clockField("at"),
  ...["kind", "actor", "session_key", "worker_id", "task_id", "execution_id", "message_id", "data"].map(
    field,
  ),
];

// A terminal shows the ID of the subject only, and the data as words.
const TERMINAL_COLUMNS: Column[] = [
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

export const group: AnyCommand = command({
  name: "events",
  about: "Show recent events, or follow new ones",
  options: {
    follow: option.flag("-f, --follow", "print new events until interrupted"),
    after: AFTER,
    sessionKey: SESSION_KEY,
    workerId: WORKER_ID,
    taskId: option.text("--task-id <id>", "filter by task", { completion: "task", ref: "task" }),
    kind: option.text("--kind <kinds>", "filter by event kind, e.g. task.created,task.failed", {
      completion: "event_kind",
      multiple: true,
    }),
    actor: ACTOR,
    pageSize: option.int("--page-size <n>", "number of events, at most 100", { default: 50 }),
  },
  examples: ["events", "events -f --kind task.failed,execution.failed", "events --after 1200 --json"],
  async run(context) {
    const { client, out, note, options: { follow, ...filters } } = context;
    const query = toFields(filters);
    if (follow) return await followEvents(context, query);
    const headers = { accept: "application/json" };
    const response = await client.call("GET /api/events", { query, headers });
    const { json, value } = response;
    const columns = out.format === "table" ? TERMINAL_COLUMNS : COLUMNS;
    await out.list(json, value, columns, (row) => String(row.seq));
    if (response.headers.get("link") !== null) note(`more events: use --after ${value.at(-1)?.seq}`);
  },
});

type Query = Record<string, string | number>;

// After its token expires, a login gets a new one and continues after the last received event (contract 9).
async function followEvents(context: BaseContext, query: Query): Promise<void> {
  const { client } = context;
  let after = query.after === undefined ? await findLatestSeq(context, query) : Number(query.after);
  while (true) {
    const { ended, seq } = await readStream(context, { ...query, after });
    after = seq;
    if (ended === "token_expired" && client.canRenew) continue;
    const code = ended === "token_expired" || ended === "revoked" ? "unauthenticated" : "unavailable";
    throw new ServiceError(
      code,
      `Cannot follow events: ${ENDS[ended] ?? "the connection was lost. Try again."}`,
    );
  }
}

const ENDS: Record<string, string> = {
  shutdown: "the service is shutting down",
  token_expired: "the token has expired. Log in again.",
  revoked: "the token was revoked",
};

async function findLatestSeq({ client }: BaseContext, query: Query): Promise<number> {
  const headers = { accept: "application/json" };
  const { value } = await client.call("GET /api/events", { query: { ...query, page_size: 1 }, headers });
  return value.at(-1)?.seq ?? 0;
}

async function readStream(
  { client, out }: BaseContext,
  query: Query & { after: number },
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
      else out.row(JSON.parse(data) as Row, out.format === "table" ? TERMINAL_COLUMNS : COLUMNS, "seq");
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of stream.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
  return { ended, seq };
}
