import type { Database } from "../../store/db/database.ts";
import { journalRange } from "../../store/events/journal.ts";

/** Where a stream begins: after the event with this number. */
export interface StreamStart {
  after: number;
  /** The number of the client is unknown, so the client has to forget what it knows (reliability SSE-3). */
  reset: boolean;
}

/** Numbers of the oldest event that is kept and of the newest. */
interface EventRange {
  first: number;
  last: number;
}

/**
 * Where a stream begins for a client that wants every event after number `wanted`: there, while the journal has them. Without
 * a number it begins now. With an unknown or deleted number it begins at `replayFrom`.
 */
export async function resume(
  db: Database,
  wanted: number | null,
  replayFrom: (range: EventRange) => Promise<number>,
): Promise<StreamStart> {
  const range = await journalRange(db);
  if (wanted === null) return { after: range.last, reset: false };
  const oldest = range.first === 0 ? range.last : range.first - 1;
  const known = wanted >= oldest && wanted <= range.last;
  return known ? { after: wanted, reset: false } : { after: await replayFrom(range), reset: true };
}
