import { findNextOccurrence } from "../../domain/work/cron.ts";
import type { Reset } from "./reset.ts";

const MINUTE_MS = 60_000;

/** Returns the time of a reset in Unix ms. A clock time counts to the end of its minute. Null for a time that never comes. */
export function resolveReset(reset: Reset, now: number, timeZone: string): number | null {
  if ("at" in reset) return reset.at;
  if ("inMs" in reset) return now + reset.inMs;
  try {
    const at = findNextOccurrence(reset.cron, timeZone, now - MINUTE_MS);
    return at === null ? null : at + MINUTE_MS;
  } catch {
    return null;
  }
}
