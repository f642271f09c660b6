import { now, secondNow } from "../live/clock.ts";
import { formatAgo, formatDuration, formatTime } from "./format.ts";

/** A time relative to now, with the full time as its tooltip. */
export function Ago({ at }: { at: number | null }) {
  if (at === null) return <span class="quiet">–</span>;
  return <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>{formatAgo(at, now.value)}</time>;
}

/** A duration, up to now if it has no end. */
export function Duration({ from, to }: { from: number | null; to: number | null }) {
  if (from === null) return <span class="quiet">–</span>;
  return <span class="number">{formatDuration((to ?? secondNow.value) - from)}</span>;
}
