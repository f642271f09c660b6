import {
  isIndexed,
  SEARCHED_MAX_CHARACTERS,
  type SearchHit,
  type SearchKind,
} from "../../domain/system/search.ts";
import { buildFirstIdAt, buildPattern, CLOCK_SLACK_MS } from "../db/filter.ts";
import type { Database, Value } from "../db/database.ts";
import { BLOCK_ROWS, buildBlockTerm, buildKindTerm, buildTerm } from "../migrations/schema_search.ts";

/** The rows that a search may find. */
export interface SearchScope {
  kinds: readonly SearchKind[];
  words: readonly string[];
  /** The only conversation, or null for all. */
  sessionKey: string | null;
  /** Whether the memory of a conversation includes the global entries. */
  withGlobal: boolean;
  workerId: string | null;
  /** The only worker whose results count, or null for all. */
  resultsOf: string | null;
  since: number | null;
}

/** A row with the trigrams of the words. Its text shows whether it has the words. */
interface SearchRow extends Omit<SearchHit, "excerpt" | "ranges"> {
  number: number;
  /** The id of the row in the index. */
  cursor: string;
  text: string;
}

const COLUMNS = `entry.number as number, entry.id as cursor, entry.source as source,
  case source when 'memory' then entry.key else entry.id end as id,
  case source when 'execution' then 'result' when 'memory' then 'memory' else 'message' end as kind,
  case source when 'inbound' then inbound.received_at when 'outbound' then outbound.created_at
    when 'execution' then execution.created_at else memory.updated_at end as at,
  case source when 'inbound' then inbound.session_key when 'outbound' then outbound.session_key
    when 'execution' then execution.session_key else iif(entry.scope = 'global', '', entry.scope) end as session_key,
  case source when 'outbound' then iif(outbound.source_type = 'worker', outbound.source_id, '')
    when 'execution' then execution.worker_id else '' end as worker_id,
  case source when 'inbound' then inbound.content when 'outbound' then outbound.content
    when 'execution' then execution.result else entry.key || ' ' || memory.value end as text`;

const JOINS = `left join inbound_message as inbound on source = 'inbound' and inbound.id = entry.id
    left join outbound_message as outbound on source = 'outbound' and outbound.id = entry.id
    left join execution on source = 'execution' and execution.id = entry.id
    left join memory on source = 'memory' and memory.scope = entry.scope and memory.key = entry.key`;

/** Candidates that one query of the index returns. */
const CANDIDATES_READ = 1_000;
/** Rows that one query reads with their texts. */
const ROWS_READ = 200;

interface SearchPart {
  rows: SearchRow[];
  /** Candidates, including those without the words and those that the reader cannot see. */
  read: number;
  /** The candidates before this number were not read. */
  before: number;
}

/** A query of the index: an expression of FTS5, or null for all rows. */
export interface SearchPlan {
  scope: SearchScope;
  match: string | null;
  /** Candidates have a number of at least this. */
  floor: number;
  /** Whether the candidates are the rows of a short conversation, which one query can read. */
  isShort: boolean;
}

/** Prepares a search. Returns null when the index has no row of the conversation or the worker. */
export async function planSearch(db: Database, scope: SearchScope): Promise<SearchPlan | null> {
  const { kinds, words, sessionKey, withGlobal, workerId, since } = scope;
  const parts: string[] = [];
  for (const word of words.filter(isIndexed)) parts.push(...listTrigrams(word).map(quote));
  if (sessionKey !== null) {
    const names = [`session:${sessionKey}`, ...(withGlobal ? ["session:global"] : [])];
    const terms = await listTerms(db, names);
    if (terms.length === 0) return null;
    const conversation = `(${terms.map(quote).join(" OR ")})`;
    const floor = since === null ? 0 : await findNumberAt(db, since);
    // Reading a short conversation is faster than a search for its few rows in the lists of frequent trigrams.
    if (await hasFewRows(db, conversation)) return { scope, match: conversation, floor, isShort: true };
    parts.push(conversation);
  }
  if (workerId !== null) {
    const terms = await listTerms(db, [`worker:${workerId}`]);
    if (terms.length === 0) return null;
    parts.push(...terms.map(quote));
  }
  if (kinds.length < 3) {
    const terms = await Promise.all(
      kinds.map((kind) => db.readValue<string>(`select ${buildKindTerm(kind)}`)),
    );
    parts.push(`(${terms.map((term) => quote(term ?? "")).join(" OR ")})`);
  }
  const match = parts.length === 0 ? null : [...new Set(parts)].join(" AND ");
  const floor = since === null ? 0 : await findNumberAt(db, since);
  return { scope, match, floor, isShort: false };
}

const SHORT_ROWS = 2_000;

async function hasFewRows(db: Database, match: string): Promise<boolean> {
  const sql = "select rowid from search_text where search_text match ? order by rowid desc limit 1 offset ?";
  return await db.readValue<number>(sql, [match, SHORT_ROWS]) === null;
}

// Every second one is enough for a long word, since the texts are read anyway. Each term costs time in long lists.
function listTrigrams(word: string): string[] {
  const characters = [...word];
  const last = characters.length - 3;
  const step = characters.length <= SHORT_WORD_CHARACTERS ? 1 : 2;
  const starts = Array.from({ length: Math.ceil(last / step) + 1 }, (_, n) => Math.min(n * step, last));
  return starts.map((at) => characters.slice(at, at + 3).join(""));
}

// The few trigrams of a short word are frequent, and reading the texts that have them takes longer than reading more lists.
const SHORT_WORD_CHARACTERS = 7;

function quote(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

function listTerms(db: Database, names: string[]): Promise<string[]> {
  return db.readColumn<string>(
    `select ${buildTerm("wanted.value")} as term
    from json_each(?) as wanted
    where exists (select 1 from search_term where name = wanted.value)`,
    [JSON.stringify(names)],
  );
}

async function findNumberAt(db: Database, since: number): Promise<number> {
  const first = buildFirstIdAt(Math.max(0, since - CLOCK_SLACK_MS));
  const sql = "select number from search_entry where id >= ? order by id limit 1";
  return await db.readValue<number>(sql, [first]) ?? Number.MAX_SAFE_INTEGER;
}

/** Returns the number after the newest row or, with a cursor, that of its row, also when the row is gone. */
export async function findSearchPlace(db: Database, cursor: string | undefined): Promise<number> {
  if (cursor === undefined) {
    return (await db.readValue<number>("select max(number) from search_entry") ?? 0) + 1;
  }
  const before = "select number + 1 from search_entry where id < ? order by id desc limit 1";
  return await db.readValue<number>("select number from search_entry where id = ?", [cursor]) ??
    await db.readValue<number>(before, [cursor]) ?? 0;
}

/** Returns the number of the oldest of the newest `most` candidates, or null when there are no more than those. */
export async function findSearchFloor(
  db: Database,
  { match, floor }: SearchPlan,
  most: number,
): Promise<number | null> {
  const { sql, args } = buildCandidatesSql(match, floor, Number.MAX_SAFE_INTEGER);
  const next = await db.readValue<number>(`${sql} limit 1 offset ?`, [...args, most]);
  return next === null ? null : next + 1;
}

/** Reads up to `most` of the newest candidates in a range of numbers, and those rows that the reader can see. */
export async function readCandidates(
  db: Database,
  { scope, match, isShort }: SearchPlan,
  { from, before }: { from: number; before: number },
  most: number,
): Promise<SearchPart> {
  const filters = scope.words.filter(hasOneCase).map(buildPattern);
  const limit = Math.min(most, filters.length > 0 ? CANDIDATES_READ : ROWS_READ);
  const bounded = match === null || isShort
    ? match
    : `(${match}) AND (${(await listBlockTerms(db, from, before)).join(" OR ")})`;
  const candidates = buildCandidatesSql(bounded, from, before);
  const numbers = await db.readColumn<number>(`${candidates.sql} limit ?`, [...candidates.args, limit]);
  const visible = buildVisibleSql(scope);
  const rows = await db.read<SearchRow>(
    `with found as (
      select ${COLUMNS}
      from json_each(?) as candidate
      join search_entry as entry on entry.number = candidate.value
      ${JOINS})
    select number, cursor, id, kind, at, session_key, worker_id, substr(text, 1, ${SEARCHED_MAX_CHARACTERS}) as text
    from found
    where ${[visible.sql, ...filters.map(() => "text like ? escape '\\'")].join(" and ")}
    order by number desc
    limit ?`,
    [JSON.stringify(numbers), ...visible.args, ...filters, ROWS_READ],
  );
  const isFull = rows.length === ROWS_READ;
  const last = isFull ? rows.at(-1)?.number : numbers.length === limit ? numbers.at(-1) : from;
  return { rows, read: numbers.length, before: last ?? from };
}

function listBlockTerms(db: Database, from: number, before: number): Promise<string[]> {
  const first = Math.floor(from / BLOCK_ROWS);
  const last = Math.floor((before - 1) / BLOCK_ROWS);
  return db.readColumn<string>(
    `select '"' || ${buildBlockTerm("value")} || '"' as term from json_each(?)`,
    [JSON.stringify(Array.from({ length: last - first + 1 }, (_, n) => first + n))],
  );
}

// `like` ignores the case of ASCII letters alone.
function hasOneCase(word: string): boolean {
  const rest = word.replace(/[a-z]/gi, "");
  return rest.toLowerCase() === rest.toUpperCase();
}

function buildCandidatesSql(match: string | null, floor: number, before: number) {
  if (match === null) {
    return {
      sql: "select number from search_entry where number < ? and number >= ? order by number desc",
      args: [before, floor] as Value[],
    };
  }
  return {
    sql:
      "select rowid as number from search_text where search_text match ? and rowid < ? and rowid >= ? order by rowid desc",
    args: [match, before, floor] as Value[],
  };
}

// The terms of the index only find rows fast. The rows themselves decide who sees them.
function buildVisibleSql({ kinds, sessionKey, withGlobal, workerId, resultsOf, since }: SearchScope) {
  const conditions = [`kind in (${kinds.map((kind) => `'${kind}'`).join(", ")})`, "text is not null"];
  const args: Value[] = [];
  if (sessionKey !== null) {
    conditions.push(`(session_key = ?${withGlobal ? " or kind = 'memory' and session_key = ''" : ""})`);
    args.push(sessionKey);
  }
  if (workerId !== null) {
    conditions.push("worker_id = ?");
    args.push(workerId);
  }
  if (resultsOf !== null) {
    conditions.push("(kind <> 'result' or worker_id = ?)");
    args.push(resultsOf);
  }
  if (since !== null) {
    conditions.push("at >= ?");
    args.push(since);
  }
  return { sql: conditions.join(" and "), args };
}
