import type { JournalEntry } from "../../domain/system/journal.ts";
import { getConversationWakeup } from "../../base/wakeups.ts";
import { getOrigin } from "../../base/origin.ts";
import type { RunKeys } from "../../domain/call/run_identity.ts";
import type { Database, Statement, Value } from "../db/database.ts";
import type { SqlCondition } from "../db/driver.ts";
import { addBounds, type Bounds, matchAny, type Where } from "../db/filter.ts";
import { MESSAGE_IS_UNROUTED, TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { COUNT_MAX } from "../../domain/call/page.ts";
import type { EventKind } from "../../domain/call/vocabulary.ts";

const EVENT_DATA_MAX_CHARACTERS = 8_192;
// The length of each text in larger data.
const CUT_TO_CHARACTERS = 500;

// A start writes some events before it compares the clock with earlier events.
const LATEST_EVENTS = 1_000;

const INTO_JOURNAL = `insert into journal
  (at, kind, session_key, worker_id, task_id, execution_id, message_id, actor, data, address, user_agent)`;
const INSERT = `${INTO_JOURNAL} select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?`;

/** Builds an event. Belongs into the batch that makes the event true (architecture, sentence 2). */
export function record(at: number, entry: JournalEntry): Statement {
  return { sql: INSERT, args: listValues(at, entry), wakeup: chooseWakeup(entry.session_key) };
}

type TimedEvent = readonly [at: number, entry: JournalEntry];

/** Builds many events as one statement, in their order. */
export function recordAll(events: readonly TimedEvent[]): Statement {
  const wakeups = events.flatMap(([, { session_key }]) => chooseWakeup(session_key) ?? []);
  return {
    sql: `${INTO_JOURNAL}
      select ${Array.from({ length: 11 }, (_, at) => `value ->> ${at}`).join(", ")}
      from json_each(?)
      order by key`,
    args: [JSON.stringify(events.map(([at, entry]) => listValues(at, entry)))],
    wakeup: [...new Set(wakeups)],
  };
}

/** Builds an event that is stored only if the condition holds when its statement runs. */
export function recordWhen(at: number, entry: JournalEntry, when: SqlCondition): Statement {
  const { sql, args, wakeup } = record(at, entry);
  return { sql: `${sql} where ${when.sql}`, args: [...args, ...when.args], wakeup };
}

/** Builds a transition with its event. Without a changed row, a guarded transition rolls back, and any other stores no event. */
export function recordTransition(
  transition: Statement | Statement[],
  at: number,
  entry: JournalEntry,
): Statement[] {
  if (Array.isArray(transition)) return [...transition, record(at, entry)];
  return [transition, recordWhen(at, entry, { sql: "changes() = 1", args: [] })];
}

function listValues(at: number, entry: JournalEntry): Value[] {
  const { actor = "system" } = entry;
  const { address, userAgent } = getOrigin(actor);
  return [
    at,
    entry.kind,
    entry.session_key ?? "",
    entry.worker_id ?? "",
    entry.task_id ?? "",
    entry.execution_id ?? "",
    entry.message_id ?? "",
    actor,
    formatData(entry),
    address,
    userAgent,
  ];
}

// Lists and streams limit the number of events they read, so each event has to be small (contract 8.18).
function formatData({ data = {} }: JournalEntry): string {
  const text = JSON.stringify(data);
  if (text.length <= EVENT_DATA_MAX_CHARACTERS) return text;
  return JSON.stringify(
    data,
    (_, value) => typeof value === "string" ? value.slice(0, CUT_TO_CHARACTERS) : value,
  );
}

function chooseWakeup(sessionKey: string | undefined): string | undefined {
  return sessionKey ? getConversationWakeup(sessionKey) : undefined;
}

/** Records `session.idle` if the conversation has no open work. Has to be the last statement of the batch to see the others' changes. */
export function recordIdle(at: number, sessionKey: string): Statement {
  // Repeats the condition of the partial index. Otherwise the planner would read every task of the conversation.
  return {
    sql: `insert into journal (at, kind, session_key, actor)
      select ?, 'session.idle', ?, 'system'
      where not exists (
          select 1
          from task
          where session_key = ? and status ${TASK_IS_ACTIVE} and status <> 'scheduled')
        and not exists (
          select 1 from inbound_message where status ${MESSAGE_IS_UNROUTED} and session_key = ?)`,
    args: [at, sessionKey, sessionKey, sessionKey],
    wakeup: chooseWakeup(sessionKey),
  };
}

export interface JournalRow extends RunKeys {
  seq: number;
  at: number;
  kind: EventKind;
  actor: string;
  /** JSON text. */
  data: string;
}

const COLUMNS = "seq, at, kind, session_key, worker_id, task_id, execution_id, message_id, actor, data";

export interface JournalFilter {
  session_key?: string | readonly string[] | undefined;
  worker_id?: string | readonly string[] | undefined;
  task_id?: string | readonly string[] | undefined;
  kinds?: string[] | undefined;
  actors?: string[] | undefined;
}

/** Lists events after the number `after`, oldest first. */
export function listEvents(
  db: Database,
  after: number,
  limit: number,
  filter: JournalFilter = {},
): Promise<JournalRow[]> {
  return selectEvents(db, ["seq > ?"], [after], "seq", limit, filter);
}

/** Lists the latest events, oldest first. */
export async function listLatestEvents(
  db: Database,
  limit: number,
  filter: JournalFilter = {},
): Promise<JournalRow[]> {
  return (await selectEvents(db, ["seq > 0"], [], "seq desc", limit, filter)).reverse();
}

function selectEvents(
  db: Database,
  conditions: string[],
  args: Value[],
  order: "seq" | "seq desc",
  limit: number,
  filter: JournalFilter,
): Promise<JournalRow[]> {
  const where: Where = { conditions, args };
  addFilter(where, filter);
  return db.read<JournalRow>(
    `select ${COLUMNS}
    from journal
    where ${conditions.join(" and ")}
    order by ${order}
    limit ?`,
    [...args, limit],
  );
}

function addFilter(where: Where, filter: JournalFilter): void {
  for (const name of ["session_key", "worker_id", "task_id"] as const) {
    const value = filter[name];
    if (value === undefined) continue;
    // The partial indexes exclude '', and the planner uses them only for queries that do so, too.
    matchAny(name)(where, value);
    where.conditions.push(`${name} <> ''`);
  }
  if (filter.kinds !== undefined && filter.kinds.length > 0) matchAny("kind")(where, filter.kinds);
  if (filter.actors !== undefined && filter.actors.length > 0) matchAny("actor")(where, filter.actors);
}

/** Counts events up to COUNT_MAX + 1 (contract 8.2). */
export function countEvents(db: Database, after: number, filter: JournalFilter): Promise<number> {
  const where: Where = { conditions: ["seq > ?"], args: [after] };
  addFilter(where, filter);
  return countRows(db, where);
}

async function countRows(db: Database, { conditions, args }: Where): Promise<number> {
  return await db.readValue<number>(
    `select count(*) as total from (select 1 from journal where ${conditions.join(" and ")} limit ?)`,
    [...args, COUNT_MAX + 1],
  ) ?? 0;
}

/** A change with the address of its caller (contract 9). */
export interface AuditRow extends JournalRow {
  address: string;
  user_agent: string;
}

type AuditFilter = Pick<JournalFilter, "kinds" | "actors"> & Bounds;

function buildAuditWhere(after: number, filter: AuditFilter): Where {
  const where: Where = { conditions: ["address <> ''", "seq > ?"], args: [after] };
  if (filter.kinds !== undefined) matchAny("kind")(where, filter.kinds);
  if (filter.actors !== undefined) matchAny("actor")(where, filter.actors);
  addBounds(where, "at", filter);
  return where;
}

/** Counts audited changes up to COUNT_MAX + 1 (contract 8.2). */
export function countAudit(db: Database, after: number, filter: AuditFilter): Promise<number> {
  return countRows(db, buildAuditWhere(after, filter));
}

/** Lists changes with a caller after the number `after`, oldest first. */
export function listAudit(
  db: Database,
  after: number,
  limit: number,
  filter: AuditFilter,
): Promise<AuditRow[]> {
  const where = buildAuditWhere(after, filter);
  return db.read<AuditRow>(
    `select ${COLUMNS}, address, user_agent
    from journal
    where ${where.conditions.join(" and ")}
    order by seq
    limit ?`,
    [...where.args, limit],
  );
}

/** Returns the numbers of the newest and the oldest stored event, 0 and 0 before the first event. */
export async function readJournalRange(db: Database): Promise<{ first: number; last: number }> {
  // The sequence table keeps the last number after retention has emptied the journal.
  const row = await db.first<{ first: number | null; last: number | null }>(
    `select (select min(seq) from journal) as first,
      (select seq from sqlite_sequence where name = 'journal') as last`,
  );
  return { first: row?.first ?? 0, last: row?.last ?? 0 };
}

/** Returns the latest time of the newest events in Unix ms, 0 without any. */
export async function findLatestEventAt(db: Database): Promise<number> {
  return await db.readValue<number>(
    `select max(at) as at from (select at from journal order by seq desc limit ${LATEST_EVENTS})`,
  ) ?? 0;
}

/** Returns the time of the oldest stored event in Unix ms, or null. */
export function findOldestEventAt(db: Database): Promise<number | null> {
  return db.readValue<number>("select min(at) from journal");
}
