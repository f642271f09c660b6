import { yieldToLoop } from "../../base/yield_to_loop.ts";
import { conflict, ServiceError } from "../../domain/call/error.ts";
import { formatJson } from "../../domain/call/json.ts";
import { getBoundSessionKey, mayCall } from "../../domain/call/scope.ts";
import {
  buildPatterns,
  cutExcerpt,
  isIndexed,
  type RecallQuery,
  SEARCH_IN,
  SEARCH_MAX_MS,
  SEARCH_PAGE_ROWS,
  SEARCH_READ_MAX_ROWS,
  SEARCHED,
  type SearchHit,
  type SearchIn,
  type SearchQuery,
  splitWords,
} from "../../domain/system/search.ts";
import type { Database } from "../../store/db/database.ts";
import {
  findSearchFloor,
  findSearchPlace,
  planSearch,
  readCandidates,
  type SearchPlan,
  type SearchScope,
} from "../../store/events/search.ts";
import type { Answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/**
 * Finds the texts with all words that the caller can read, newest first. Throws `forbidden` without a scope for `in`, and
 * `conflict` while the search is off (contract 31).
 */
export async function search(
  { db, searches }: Deps<"db" | "searches">,
  call: Call,
  query: SearchQuery,
): Promise<Answer<SearchHit[]>> {
  const kinds = listReadable(call, query.in).map((one) => SEARCHED[one].kind);
  const bound = getBoundSessionKey(call.caller);
  const { session_key = null, worker_id = null, since = null } = query;
  checkOn(searches);
  // A run does not learn whether another conversation exists.
  if (bound !== null && session_key !== null && session_key !== bound) return EMPTY;
  return await find(db, query, {
    kinds,
    words: splitWords(query.q),
    sessionKey: bound ?? session_key,
    withGlobal: bound !== null && session_key === null,
    workerId: worker_id,
    resultsOf: null,
    since,
  });
}

/**
 * Finds messages of the conversation of a run, results of its worker there, and the memory that the run can read. Needs no scope for
 * messages and results, which the run and its session know already. Throws `conflict` while the search is off (contract 31).
 */
export async function recall(
  { db, searches }: Deps<"db" | "searches">,
  { caller }: Call,
  query: RecallQuery,
): Promise<Answer<SearchHit[]>> {
  checkOn(searches);
  const { run } = caller;
  if (run === null) return EMPTY;
  return await find(db, query, {
    kinds: ["message", "result", ...(mayCall(caller, "read:memory") ? ["memory" as const] : [])],
    words: splitWords(query.q),
    sessionKey: run.session_key,
    withGlobal: true,
    workerId: null,
    resultsOf: run.worker_id,
    since: query.since ?? null,
  });
}

function checkOn(searches: boolean): void {
  if (!searches) throw conflict("Cannot search: the configuration has search: false.");
}

const EMPTY: Answer<SearchHit[]> = { json: formatJson<SearchHit[]>([]), next: null };

function listReadable(call: Call, wanted: readonly SearchIn[] | undefined): readonly SearchIn[] {
  const readable = SEARCH_IN.filter((one) => mayCall(call.caller, SEARCHED[one].scope));
  const missing = (wanted ?? SEARCH_IN).find((one) => !readable.includes(one));
  if (missing === undefined || wanted === undefined && readable.length > 0) return wanted ?? readable;
  const { scope } = SEARCHED[missing];
  throw new ServiceError("forbidden", `Cannot search ${missing}: the token lacks the scope ${scope}`, {
    required_scope: scope,
  });
}

async function find(db: Database, { cursor }: RecallQuery, scope: SearchScope): Promise<Answer<SearchHit[]>> {
  const plan = await planSearch(db, scope);
  if (plan === null) return EMPTY;
  const floor = scope.words.some(isIndexed) ? null : await findSearchFloor(db, plan, SEARCH_READ_MAX_ROWS);
  const bounded = floor === null ? plan : { ...plan, floor: Math.max(floor, plan.floor) };
  const start = await findSearchPlace(db, cursor);
  const { hits, next, isCut } = await collect(db, bounded, start);
  const isPartial = isCut || floor !== null;
  return {
    json: formatJson(hits),
    next: next === null ? null : { name: "cursor", value: next },
    ...(isPartial ? { warning: PARTIAL } : {}),
  };
}

const PARTIAL = "partial: only the newest rows were searched. Use a longer word or a filter.";

interface Collection {
  hits: SearchHit[];
  /** The cursor of the next page, or null at the end. */
  next: string | null;
  /** Whether the search ended at its limit. */
  isCut: boolean;
}

// The index finds the rows with the parts of a word. Only their texts show whether they have the word. A query of the index blocks the
// process and reads whole lists when frequent words never meet, so each one covers a range of numbers.
async function collect(db: Database, plan: SearchPlan, start: number): Promise<Collection> {
  const patterns = buildPatterns(plan.scope.words);
  const hits: SearchHit[] = [];
  const startedAt = performance.now();
  let last = "";
  let range = plan.isShort ? Infinity : RANGE_ROWS;
  let read = 0;
  for (let before = start; before > plan.floor;) {
    const from = Math.max(plan.floor, before - range);
    const queriedAt = performance.now();
    const part = await readCandidates(db, plan, { from, before }, FIRST_READ_ROWS + read);
    for (const { number: _number, cursor, text, ...row } of part.rows) {
      const excerpt = cutExcerpt(text, patterns);
      if (excerpt === null) continue;
      if (hits.length === SEARCH_PAGE_ROWS) return { hits, next: last, isCut: false };
      hits.push({ ...pickHit(row), ...excerpt });
      last = cursor;
    }
    before = part.before;
    read += part.read;
    const now = performance.now();
    if (before > plan.floor && (read >= SEARCH_READ_MAX_ROWS || now - startedAt > SEARCH_MAX_MS)) {
      return { hits, next: null, isCut: true };
    }
    if (now - queriedAt < QUERY_MS) range *= 4;
    else range = Math.max(RANGE_ROWS, range / 2);
    await yieldToLoop();
  }
  return { hits, next: null, isCut: false };
}

// A row after the page shows whether there is a next page.
const FIRST_READ_ROWS = SEARCH_PAGE_ROWS + 1;
/** Numbers that the first query covers. */
const RANGE_ROWS = 20_000;
/** A faster query makes the next range larger. */
const QUERY_MS = 20;

function pickHit({ id, kind, at, session_key, worker_id }: Omit<SearchHit, "excerpt" | "ranges">) {
  return { id, kind, at, session_key, worker_id };
}
