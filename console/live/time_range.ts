import { useMemo } from "preact/hooks";

const HOUR_MS = 3_600_000;
const LENGTHS: Record<string, number> = { "1h": 1, "24h": 24, "7d": 7 * 24, "30d": 30 * 24 };

export const TIME_RANGES = [
  ["", "Any time"],
  ["1h", "Last hour"],
  ["24h", "Last 24 hours"],
  ["7d", "Last 7 days"],
  ["30d", "Last 30 days"],
  ["custom", "Custom range"],
] as const;

interface RangeValues {
  /** A key of TIME_RANGES. */
  since: string;
  /** The bounds of a custom range, in the browser's local time. */
  from: string;
  to: string;
}

/** Returns the bounds of a time range in Unix ms as text, "" without a bound. */
export function useTimeRange({ since, from, to }: RangeValues): { from: string; to: string } {
  // A range until now keeps its start while the page is open. Otherwise each rendering would request another list.
  return useMemo(() => {
    const hours = LENGTHS[since];
    if (hours !== undefined) return { from: String(Date.now() - hours * HOUR_MS), to: "" };
    return since === "custom" ? { from: parseLocal(from), to: parseLocal(to) } : { from: "", to: "" };
  }, [since, from, to]);
}

function parseLocal(text: string): string {
  const at = new Date(text).getTime();
  return Number.isNaN(at) ? "" : String(at);
}
