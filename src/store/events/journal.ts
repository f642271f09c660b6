import type { JournalEntry } from "../../domain/system/journal.ts";
import { conversationWakeup } from "../../base/wakeups.ts";
import { originOf } from "../../base/origin.ts";
import type { Database, Row, Statement, Value } from "../db/database.ts";
import { between, type Bounds, oneOf, type Where } from "../db/filter.ts";
import { MESSAGE_IS_UNROUTED, TASK_IS_ACTIVE } from "../db/status_sql.ts";
import { COUNT_MAX } from "../../domain/call/page.ts";
import type { EventKind } from "../../domain/call/vocabulary.ts";

const EVENT_DATA_MAX_CHARACTERS = 8_192;
// Of each text in data that is longer than that.
const CUT_TO_CHARACTERS = 500;

// A start writes some events before anybody compares its clock with what was before.
const LATEST_EVENTS = 1_000;

const INTO_JOURNAL = `insert into journal
  (at, kind, session_key, worker_id, task_id, execution_id, message_id, actor, data, address, user_agent)`;
const INSERT = `${INTO_JOURNAL} values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const INSERT_IF_CHANGED = `${INTO_JOURNAL} select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? where changes() = 1`;

/** The statement that records an event. Put it into the batch that makes the event true (architecture, sentence 2). */
export function record(at: number, entry: JournalEntry): Statement {
  return { sql: INSERT, args: valuesOf(at, entry), wakeup: chooseWakeup(entry.session_key) };
}

/** An event, and when it was. */
export type Happened = readonly [at: number, entry: JournalEntry];

/** Many events in one statement, in their order. */
export function recordAll(events: readonly Happened[]): Statement {
  const wakeups = events.map(([, { session_key }]) => chooseWakeup(session_key)).filter((wakeup) =>
    wakeup !== undefined
  );
  return {
    sql: `${INTO_JOURNAL}
      select ${Array.from({ length: 11 }, (_, at) => `value ->> ${at}`).join(", ")}
      from json_each(?)
      order by key`,
    args: [JSON.stringify(events.map(([at, entry]) => valuesOf(at, entry)))],
    wakeup: [...new Set(wakeups)],
  };
}

/** The event, if this condition holds when its statement runs. */
export function recordWhen(at: number, entry: JournalEntry, when: { sql: string; args: Value[] }): Statement {
  const { args, ...rest } = record(at, entry);
  return {
    ...rest,
    sql: `${INTO_JOURNAL} select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? where ${when.sql}`,
    args: [...args, ...when.args],
  };
}

/**
 * A move and its event as one value, so that nothing can stand between them. A guarded move that changes no row rolls its
 * batch back; any other move that changes no row leaves no event.
 */
export function moved(move: Statement | Statement[], at: number, entry: JournalEntry): Statement[] {
  if (Array.isArray(move)) return [...move, record(at, entry)];
  return [move, { ...record(at, entry), sql: INSERT_IF_CHANGED }];
}

function valuesOf(at: number, entry: JournalEntry): Value[] {
  const { actor = "system" } = entry;
  const { address, userAgent } = originOf(actor);
  return [
    at,
    entry.kind,
    entry.session_key ?? "",
    entry.worker_id ?? "",
    entry.task_id ?? "",
    entry.execution_id ?? "",
    entry.message_id ?? "",
    actor,
    dataOf(entry),
    address,
    userAgent,
  ];
}

// What a list or a step of a stream reads of events is bounded by their number, so each has to be small (contract 8.18).
function dataOf({ data = {} }: JournalEntry): string {
  const text = JSON.stringify(data);
  if (text.length <= EVENT_DATA_MAX_CHARACTERS) return text;
  return JSON.stringify(
    data,
    (_, value) => typeof value === "string" ? value.slice(0, CUT_TO_CHARACTERS) : value,
  );
}

function chooseWakeup(sessionKey: string | undefined): string | undefined {
  return sessionKey ? conversationWakeup(sessionKey) : undefined;
}

/**
 * Records `session.idle` when the conversation has no open work after this batch. It has to be the last statement of the
 * batch, so that it sees the changes of the others.
 */
export function recordIdle(at: number, sessionKey: string): Statement {
  // The condition repeats that of the partial index, or the planner would read every task of the conversation.
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

/** A journal row. */
export interface JournalRow extends Row {
  seq: number;
  at: number;
  kind: EventKind;
  session_key: string;
  worker_id: string;
  task_id: string;
  execution_id: string;
  message_id: string;
  actor: string;
  /** JSON text. */
  data: string;
}

const COLUMNS = "seq, at, kind, session_key, worker_id, task_id, execution_id, message_id, actor, data";

/** Which events: all given conditions together. */
export interface JournalFilter {
  session_key?: string | readonly string[] | undefined;
  worker_id?: string | readonly string[] | undefined;
  task_id?: string | readonly string[] | undefined;
  kinds?: string[] | undefined;
  actors?: string[] | undefined;
}

/** Up to `limit` events with a number above `after`, oldest first. */
export function listEvents(
  db: Database,
  after: number,
  limit: number,
  filter: JournalFilter = {},
): Promise<JournalRow[]> {
  return selectEvents(db, ["seq > ?"], [after], "seq", limit, filter);
}

/** The latest `limit` events, oldest first. */
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
    // The partial indexes leave '' out, and the planner uses them only when the query does so, too.
    oneOf(name)(where, value);
    where.conditions.push(`${name} <> ''`);
  }
  if (filter.kinds !== undefined && filter.kinds.length > 0) oneOf("kind")(where, filter.kinds);
  if (filter.actors !== undefined && filter.actors.length > 0) oneOf("actor")(where, filter.actors);
}

/** How many events there are, counted up to COUNT_MAX + 1 (contract 8.2). */
export function countEvents(db: Database, after: number, filter: JournalFilter): Promise<number> {
  const where: Where = { conditions: ["seq > ?"], args: [after] };
  addFilter(where, filter);
  return countRows(db, where);
}

async function countRows(db: Database, { conditions, args }: Where): Promise<number> {
  const row = await db.first<{ total: number }>(
    `select count(*) as total from (select 1 from journal where ${conditions.join(" and ")} limit ?)`,
    [...args, COUNT_MAX + 1],
  );
  return row?.total ?? 0;
}

/** A change with where it came from (contract 9). */
export interface AuditRow extends JournalRow {
  address: string;
  user_agent: string;
}

type AuditFilter = Pick<JournalFilter, "kinds" | "actors"> & Bounds;

function auditOf(after: number, filter: AuditFilter): Where {
  const where: Where = { conditions: ["address <> ''", "seq > ?"], args: [after] };
  if (filter.kinds !== undefined) oneOf("kind")(where, filter.kinds);
  if (filter.actors !== undefined) oneOf("actor")(where, filter.actors);
  between(where, "at", filter);
  return where;
}

/** How many such changes there are, counted up to COUNT_MAX + 1 (contract 8.2). */
export function countAudit(db: Database, after: number, filter: AuditFilter): Promise<number> {
  return countRows(db, auditOf(after, filter));
}

/** Up to `limit` changes that somebody asked for, behind number `after`, oldest first. */
export function listAudit(
  db: Database,
  after: number,
  limit: number,
  filter: AuditFilter,
): Promise<AuditRow[]> {
  const where = auditOf(after, filter);
  return db.read<AuditRow>(
    `select ${COLUMNS}, address, user_agent
    from journal
    where ${where.conditions.join(" and ")}
    order by seq
    limit ?`,
    [...where.args, limit],
  );
}

/** Number of the newest event, and of the oldest that is kept; 0 and 0 when there was never any. */
export async function journalRange(db: Database): Promise<{ first: number; last: number }> {
  // The sequence table remembers the last number even when retention has emptied the journal.
  const row = await db.first<{ first: number | null; last: number | null }>(
    `select (select min(seq) from journal) as first,
      (select seq from sqlite_sequence where name = 'journal') as last`,
  );
  return { first: row?.first ?? 0, last: row?.last ?? 0 };
}

/** The latest time that any of the newest events had, Unix ms; 0 when there is none. */
export async function latestEventAt(db: Database): Promise<number> {
  const row = await db.first<{ at: number | null }>(
    `select max(at) as at from (select at from journal order by seq desc limit ${LATEST_EVENTS})`,
  );
  return row?.at ?? 0;
}

/** When the oldest event that is kept was, Unix ms, or null when there is none. */
export async function oldestEventAt(db: Database): Promise<number | null> {
  return (await db.first<{ at: number | null }>("select min(at) as at from journal"))?.at ?? null;
}
