import { notFound } from "../domain/error.ts";
import type { EventFilter } from "../domain/journal.ts";
import { boundTo } from "../domain/scope.ts";
import {
  journalRange,
  type JournalRow,
  listEvents as listEventRows,
  listLatestEvents,
} from "../store/journal.ts";
import type { Call, Service } from "./service.ts";

/** A page of events, oldest first: those behind `after`, or the latest (contract 4, Journal). */
export interface EventPage {
  /** JSON texts of wire objects. */
  items: string[];
  /** The number after which to continue, or null when there are no more events now. */
  next: number | null;
}

/** GET /api/events as a page. Throws `not_found` for a conversation that is not the caller's. */
export async function listEvents(service: Service, call: Call, filter: EventFilter): Promise<EventPage> {
  const bounded = eventFilterOf(call, filter);
  const { after, page_size: size } = filter;
  if (after === undefined) {
    const latest = await listLatestEvents(service.db, size, bounded);
    return { items: latest.map(eventJson), next: null };
  }
  // One more than is shown says whether there are more.
  const found = await listEventRows(service.db, after, size + 1, bounded);
  const shown = found.slice(0, size);
  return { items: shown.map(eventJson), next: found.length > size ? shown.at(-1)?.seq ?? null : null };
}

/** The filter with the caller's own bounds. Throws `not_found` for a conversation that is not the caller's. */
export function eventFilterOf(call: Call, filter: EventFilter) {
  const bound = boundTo(call.caller);
  const { session_key: wanted, worker_id, task_id, kind } = filter;
  if (bound !== null && wanted !== undefined && wanted !== bound) throw notFound("session", wanted);
  return { session_key: bound ?? wanted, worker_id, task_id, kinds: kind };
}

/** Numbers of the oldest event that is kept and of the newest. */
export function eventRange(service: Service): Promise<{ first: number; last: number }> {
  return journalRange(service.db);
}

/** An event as JSON text. */
export function eventJson(row: JournalRow): string {
  const { data, ...fields } = row;
  return `${JSON.stringify(fields).slice(0, -1)},"data":${data}}`;
}
