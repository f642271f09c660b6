import { nextOccurrence } from "../../domain/cron.ts";
import type { Reset } from "./reset.ts";

const MINUTE_MS = 60_000;

/** The reset in Unix ms. A clock time is exact to the minute, so the end of that minute counts. Null when it never comes. */
export function resetTime(reset: Reset, now: number, timeZone: string): number | null {
  if ("at" in reset) return reset.at;
  if ("inMs" in reset) return now + reset.inMs;
  try {
    const at = nextOccurrence(reset.cron, timeZone, now - MINUTE_MS);
    return at === null ? null : at + MINUTE_MS;
  } catch {
    return null;
  }
}
