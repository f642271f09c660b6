import { now, secondNow } from "../live/clock.ts";
import { formatAgo, formatDuration, formatTime } from "./format.ts";

const RECENT_MS = 70_000;

/** A time relative to now, with the full time as its tooltip. */
export function Ago({ at }: { at: number | null }) {
  if (at === null) return <span class="quiet">–</span>;
  // A recent time counts seconds, as a duration next to it does. Others are not drawn again every second.
  const recent = Math.abs(now.value - at) < RECENT_MS;
  const text = formatAgo(at, recent ? secondNow.value : now.value);
  return <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>{text}</time>;
}

/** A time with its distance from now, for the facts of a page. A touch screen shows no tooltip. */
export function ExactTime({ at }: { at: number | null }) {
  if (at === null) return <span class="quiet">–</span>;
  return (
    <>
      {formatTime(at)}, <Ago at={at} />
    </>
  );
}

/** A duration, up to now if it has no end. */
export function Duration({ from, to }: { from: number | null; to: number | null }) {
  if (from === null) return <span class="quiet">–</span>;
  return <span class="number">{formatDuration((to ?? secondNow.value) - from)}</span>;
}
