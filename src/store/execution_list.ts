import type { ExecutionFilter } from "../domain/execution.ts";
import type { Listing, Page } from "../domain/page.ts";
import type { Database, Value } from "./database.ts";
import { EXECUTION_JSON } from "./execution.ts";
import { between, list, oneOf, within } from "./list.ts";

/** Executions newest first. A session id also matches the session key, and `local:` + the id (contract 3). */
export async function listExecutions(
  db: Database,
  filter: Omit<ExecutionFilter, keyof Page>,
  boundTo: string | null,
  page: Page,
): Promise<Listing> {
  const where: string[] = [];
  const args: Value[] = [];
  const from = await withinTimes(db, where, args, filter);
  if (filter.worker_id !== undefined) oneOf(where, args, "execution.worker_id", filter.worker_id);
  if (filter.status !== undefined) oneOf(where, args, "execution.status", filter.status);
  if (boundTo !== null) oneOf(where, args, "execution.session_key", [boundTo]);
  if (filter.session_id !== undefined) await ofSessions(db, where, args, filter.session_id);
  const counter = { name: "execution" };
  return list(db, { table: "execution", from, json: EXECUTION_JSON, where, args, counter }, page);
}

// One of the two times selects the rows by its index, the other only filters them.
async function withinTimes(
  db: Database,
  where: string[],
  args: Value[],
  filter: Omit<ExecutionFilter, keyof Page>,
): Promise<string> {
  const { started_from, started_to, completed_from, completed_to } = filter;
  const base = { table: "execution" };
  const completed = {
    column: "completed_at",
    index: "execution_completed",
    from: completed_from,
    to: completed_to,
  };
  if (completed_from === undefined && completed_to === undefined) {
    const started = { column: "started_at", index: "execution_started", from: started_from, to: started_to };
    return await within(db, where, args, { ...base, ...started });
  }
  between(where, args, "+execution.started_at", started_from, started_to);
  return await within(db, where, args, { ...base, ...completed });
}

// A session is named by its key, by its local id, or by the engine's own id. One name mostly means one conversation,
// and then one index answers in the right order.
async function ofSessions(db: Database, where: string[], args: Value[], ids: string[]): Promise<void> {
  const [id = ""] = ids;
  const keys = ids.flatMap((one) => [one, `local:${one}`]);
  const found = ids.length > 1
    ? null
    : await db.first<{ low: string | null; high: string | null; keys: string }>(
      `select
      (select session_key from execution where session_id = ? order by session_key limit 1) as low,
      (select session_key from execution where session_id = ? order by session_key desc limit 1) as high,
      (select json_group_array(value) from json_each(?)
        where exists (select 1 from execution where session_key = value)) as keys`,
      [id, id, JSON.stringify(keys)],
    );
  const named = JSON.parse(found?.keys ?? "[]") as string[];
  const { low = null, high = null } = found ?? {};
  if (found !== null && low === high && (low === null || named.includes(low))) {
    return oneOf(where, args, "execution.session_key", named.length > 0 ? named : [id]);
  }
  if (found !== null && low !== null && low === high && named.length === 0) {
    where.push("execution.session_id = ?", "execution.session_key = ?");
    args.push(id, low);
    return;
  }
  const marks = (values: string[]) => values.map(() => "?").join(", ");
  where.push(`(execution.session_id in (${marks(ids)}) or execution.session_key in (${marks(keys)}))`);
  args.push(...ids, ...keys);
}
