import type { Schemas } from "./api.ts";
import { onEvent, onReset } from "./events.ts";

/** Selects the events after which something is read again: by their kind, or by a test. */
export type EventFilter = RegExp | ((event: Schemas["Event"]) => boolean);

export function isMatch(filter: EventFilter, event: Schemas["Event"]): boolean {
  return filter instanceof RegExp ? filter.test(event.kind) : filter(event);
}

/** Reads now, and again `delayMs` after an event that matters; one reading serves a burst. Returns a function that asks for one. */
export function followEvents(filter: EventFilter, delayMs: number, read: () => Promise<void>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const schedule = () => timer ??= setTimeout(() => (timer = undefined, void read()), delayMs);
  onEvent((event) => isMatch(filter, event) && schedule());
  onReset(schedule);
  void read();
  return schedule;
}
