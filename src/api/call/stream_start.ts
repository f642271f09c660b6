import type { Database } from "../../store/db/database.ts";
import { readJournalRange } from "../../store/events/journal.ts";

/** The start of a stream: after the event with this number. */
export interface StreamStart {
  after: number;
  /** True when the client's number is unknown, so the client must drop its state. */
  reset: boolean;
}

/** Numbers of the oldest stored event and the newest. */
interface EventRange {
  first: number;
  last: number;
}

/**
 * Finds the start of a stream for a client that has the events up to `wanted`. Without a number the stream starts now;
 * an unknown or deleted number starts it at `replayFrom`.
 */
export async function resume(
  db: Database,
  wanted: number | null,
  replayFrom: (range: EventRange) => Promise<number>,
): Promise<StreamStart> {
  const range = await readJournalRange(db);
  if (wanted === null) return { after: range.last, reset: false };
  const oldest = range.first === 0 ? range.last : range.first - 1;
  const known = wanted >= oldest && wanted <= range.last;
  return known ? { after: wanted, reset: false } : { after: await replayFrom(range), reset: true };
}
