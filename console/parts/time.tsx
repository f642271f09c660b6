import { now, secondNow } from "../live/clock.ts";
import { agoText, durationText, timeText } from "./format.ts";

/** A time, relative to now, with the full one on hover. */
export function Ago({ at }: { at: number | null }) {
  if (at === null) return <span class="quiet">–</span>;
  return <time dateTime={new Date(at).toISOString()} title={timeText(at)}>{agoText(at, now.value)}</time>;
}

/** How long something took, or has taken up to now. */
export function Lasted({ from, to }: { from: number | null; to: number | null }) {
  if (from === null) return <span class="quiet">–</span>;
  return <span class="number">{durationText((to ?? secondNow.value) - from)}</span>;
}
