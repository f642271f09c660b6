import { notFound } from "../../domain/call/error.ts";
import type { Event, EventFilter } from "../../domain/system/journal.ts";
import { joinJson, type Json } from "../../domain/call/json.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import {
  type AuditRow,
  countAudit,
  countEvents,
  type JournalFilter,
  type JournalRow,
  listAudit as listAuditRows,
  listEvents as listEventRows,
  listLatestEvents,
} from "../../store/events/journal.ts";
import type { Answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { resume, type StreamStart } from "../call/stream_start.ts";
import type { AuditEntry, AuditFilter } from "../../domain/system/audit.ts";

const EVENTS_PER_STEP = 200;
// After a reset the client gets this many of the latest events.
const REPLAY_MAX_EVENTS = 1_000;

/**
 * Lists one page of events, oldest first: those after number `after`, or the latest. The total counts the events after
 * `after`, or all stored ones. Throws `not_found` for a conversation that the caller cannot see.
 */
export async function listEvents({ db }: Deps<"db">, call: Call, filter: EventFilter) {
  const bounded = boundFilter(call, filter);
  const { after, page_size: size } = filter;
  if (after === undefined) {
    const [latest, total] = await Promise.all([
      listLatestEvents(db, size, bounded),
      countEvents(db, 0, bounded),
    ]);
    return { json: joinJson(latest.map(formatEvent)), total, next: null };
  }
  const [found, total] = await Promise.all([
    listEventRows(db, after, size + 1, bounded),
    countEvents(db, after, bounded),
  ]);
  return buildPage(found, size, total, formatEvent);
}

/** Finds the start of an event stream. Throws `not_found` for a conversation that the caller cannot see. */
export function findEventStart(
  { db }: Deps<"db">,
  call: Call,
  filter: EventFilter,
  wanted: number | null,
): Promise<StreamStart> {
  boundFilter(call, filter);
  const oldest = (first: number, last: number) => Math.max(0, first - 1, last - REPLAY_MAX_EVENTS);
  return resume(db, wanted, ({ first, last }) => Promise.resolve(oldest(first, last)));
}

interface NumberedEvent {
  seq: number;
  json: Json<Event>;
}

/** Reads the next events after number `after`, oldest first. */
export async function readEvents(
  { db }: Deps<"db">,
  call: Call,
  filter: EventFilter,
  after: number,
): Promise<NumberedEvent[]> {
  const rows = await listEventRows(db, after, EVENTS_PER_STEP, boundFilter(call, filter));
  return rows.map((row) => ({ seq: row.seq, json: formatEvent(row) }));
}

function boundFilter(call: Call, filter: EventFilter): JournalFilter {
  const bound = getBoundSessionKey(call.caller);
  const { session_key: wanted, worker_id, task_id, kind, actor } = filter;
  const other = bound === null ? undefined : wanted?.find((key) => key !== bound);
  if (other !== undefined) throw notFound("session", other);
  return { session_key: bound ?? wanted, worker_id, task_id, kinds: kind, actors: actor };
}

function formatEvent(row: JournalRow): Json<Event> {
  return formatJournalRow<Event, JournalRow>(row);
}

/** Formats a journal row as JSON text. Its `data` is already JSON. */
function formatJournalRow<T, R extends JournalRow>(row: R): Json<T> {
  const { data, ...fields } = row;
  return `${JSON.stringify(fields).slice(0, -1)},"data":${data}}` as Json<T>;
}

/** Lists the changes that users and runs requested, oldest first, for as long as the journal keeps them. */
export async function listAudit({ db }: Deps<"db">, filter: AuditFilter): Promise<Answer<AuditEntry[]>> {
  const { after, page_size: size, actor: actors, kind: kinds, from, to } = filter;
  const wanted = { actors, kinds, from, to };
  const [found, total] = await Promise.all([
    listAuditRows(db, after, size + 1, wanted),
    countAudit(db, after, wanted),
  ]);
  return buildPage(found, size, total, formatJournalRow<AuditEntry, AuditRow>);
}

/** Builds a page of up to `size` rows. One more row shows that another page exists. */
function buildPage<T, R extends JournalRow>(
  found: readonly R[],
  size: number,
  total: number,
  format: (row: R) => Json<T>,
): Answer<T[]> {
  const shown = found.slice(0, size);
  const last = found.length > size ? shown.at(-1) : undefined;
  return {
    json: joinJson(shown.map(format)),
    total,
    next: last === undefined ? null : { name: "after", value: String(last.seq) },
  };
}
