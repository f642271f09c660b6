import type { Database } from "../store/database.ts";
import { journalRange } from "../store/journal.ts";

/** Where a stream begins: behind the event with this number. */
export interface StreamStart {
  after: number;
  /** The client named a number that we do not have, so it has to forget what it knows (reliability SSE-3). */
  reset: boolean;
}

/** Numbers of the oldest event that is kept and of the newest. */
export interface EventRange {
  first: number;
  last: number;
}

/**
 * Where a client goes on that wants everything behind number `wanted`: there, when the journal still has it. Without a
 * number the stream begins now. With a number that was never given or is deleted it begins at `replayFrom`.
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
