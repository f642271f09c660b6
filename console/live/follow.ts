import type { Schemas } from "./api.ts";
import { onEvent, onReset } from "./events.ts";

/** Selects events by their kind or by a function. */
export type EventFilter = RegExp | ((event: Schemas["Event"]) => boolean);

export function isMatch(filter: EventFilter, event: Schemas["Event"]): boolean {
  return filter instanceof RegExp ? filter.test(event.kind) : filter(event);
}

/**
 * Reads now, and again `delayMs` after a matching event, once per burst of events. After a failure the next event reads again.
 * Returns a function that requests a reading.
 */
export function followEvents(filter: EventFilter, delayMs: number, read: () => Promise<void>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const readNow = () => void read().catch(() => {});
  const schedule = () => timer ??= setTimeout(() => (timer = undefined, readNow()), delayMs);
  onEvent((event) => isMatch(filter, event) && schedule());
  onReset(schedule);
  readNow();
  return schedule;
}
