import type { Execution, ExecutionFilter } from "../../domain/work/execution.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import type { Database } from "../db/database.ts";
import { EXECUTIONS } from "./execution.ts";
import {
  addBounds,
  addTimeRange,
  buildWhere,
  BY_LIST,
  type Filters,
  limitToConversation,
  matchAny,
  matchColumns,
  matchReference,
  matchText,
  type Where,
} from "../db/filter.ts";
import { list } from "../db/list.ts";

const TEXTS = ["instruction", "error", "worker_name"].map((name) => `execution.${name}`);

const FILTERS: Filters<ExecutionFilter> = {
  ref: matchReference("execution"),
  ...matchColumns("execution", ["worker_id", "status"]),
  // The + keeps these columns out of the choice of an index.
  failure: matchAny("+execution.failure"),
  engine: matchAny("+execution.engine"),
  text: matchText(TEXTS, "execution"),
  session_id: BY_LIST,
  started_from: BY_LIST,
  started_to: BY_LIST,
  completed_from: BY_LIST,
  completed_to: BY_LIST,
};

const STARTED = { table: "execution", column: "started_at", index: "execution_started" };
const COMPLETED = { table: "execution", column: "completed_at", index: "execution_completed" };

/** Lists executions, newest first. A session id also matches the session key, and `local:` + the id (contract 3, Execution). */
export async function listExecutions(
  db: Database,
  filter: ExecutionFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Execution>> {
  const where = buildWhere(filter, FILTERS);
  const from = await addTimeRanges(db, where, filter);
  limitToConversation(where, "execution.session_key", boundTo);
  if (filter.session_id !== undefined) await addSessionFilter(db, where, filter.session_id);
  return list(db, { ...EXECUTIONS, from, where, counter: { name: "execution" } }, page);
}

// The completion time selects the rows by its index, the start time only filters them.
async function addTimeRanges(db: Database, where: Where, filter: ExecutionFilter): Promise<string> {
  const started = { from: filter.started_from, to: filter.started_to };
  const completed = { from: filter.completed_from, to: filter.completed_to };
  if (completed.from === undefined && completed.to === undefined) {
    return await addTimeRange(db, where, STARTED, started);
  }
  addBounds(where, "+execution.started_at", started);
  return await addTimeRange(db, where, COMPLETED, completed);
}

// A session is a session key, a local id, or the engine's own id. One id usually means one conversation, and then one
// index finds the rows in the right order.
async function addSessionFilter(db: Database, where: Where, ids: string[]): Promise<void> {
  const [id = ""] = ids;
  const keys = ids.flatMap((one) => [one, `local:${one}`]);
  const match = ids.length > 1
    ? null
    : await db.first<{ low: string | null; high: string | null; keys: string }>(
      `select
      (select session_key from execution where session_id = ? order by session_key limit 1) as low,
      (select session_key from execution where session_id = ? order by session_key desc limit 1) as high,
      (select json_group_array(value) from json_each(?)
        where exists (select 1 from execution where session_key = value)) as keys`,
      [id, id, JSON.stringify(keys)],
    );
  const named = JSON.parse(match?.keys ?? "[]") as string[];
  const { low = null, high = null } = match ?? {};
  if (match !== null && low === high && (low === null || named.includes(low))) {
    return matchAny("execution.session_key")(where, named.length > 0 ? named : [id]);
  }
  if (match !== null && low !== null && low === high && named.length === 0) {
    where.conditions.push("execution.session_id = ?", "execution.session_key = ?");
    where.args.push(id, low);
    return;
  }
  const marks = (values: string[]) => values.map(() => "?").join(", ");
  where.conditions.push(
    `(execution.session_id in (${marks(ids)}) or execution.session_key in (${marks(keys)}))`,
  );
  where.args.push(...ids, ...keys);
}
