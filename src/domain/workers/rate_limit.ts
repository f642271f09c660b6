import type { Hold } from "../work/block.ts";
import { type Backoff, backoffMs } from "../../base/backoff.ts";

/** An engine with a limit of its provider: no run of it starts before `until`. */
export interface RateLimit {
  engine: string;
  /** Unix ms. */
  until: number;
  /** Runs in a row that met the limit, each after the wait of the one before. */
  strikes: number;
}

// A provider that names no time is asked again after 1, 4, 16 minutes, and then every hour.
const RETRY: Backoff = { firstMs: 60_000, lastMs: 3_600_000, factor: 4 };
const WAIT_MIN_MS = 1_000;
// Weekly quotas are the longest known ones; a later time must be an error.
const WAIT_MAX_MS = 8 * 86_400_000;

/** A task fails after so many runs that met a limit: it must not wait for ever. */
export const LIMITED_RUNS_MAX = 20;

/** A wait of this length or longer is announced to the person who waits for the reply. */
export const TOLD_WAIT_MS = 60_000;

/**
 * The limit after a run met one. `resetsAt` is when it is over, null where that is unknown. Runs that meet a limit at the
 * same time are one strike.
 */
export function nextLimit(
  engine: string,
  before: RateLimit | null,
  resetsAt: number | null,
  now: number,
): RateLimit {
  const waiting = before !== null && before.until > now;
  const strikes = waiting ? before.strikes : (before?.strikes ?? 0) + 1;
  const unclamped = resetsAt === null ? backoffMs(RETRY, strikes) : resetsAt - now;
  const wait = Math.min(Math.max(unclamped, WAIT_MIN_MS), WAIT_MAX_MS);
  // Without a time: tasks that wait already do not start their wait again.
  if (waiting && resetsAt === null) return before;
  return { engine, until: Math.ceil(Math.max(now + wait, waiting ? before.until : 0)), strikes };
}

/** The limit as what holds the tasks of its engine (contract 14). */
export function holdOf(limit: Pick<RateLimit, "engine" | "until">): Hold {
  return {
    held: `engine:${limit.engine}`,
    until: limit.until,
    reason: waitReason(limit),
    whom: { kind: "all" },
  };
}

/** Why a task waits, for its `reason`. */
export function waitReason({ engine, until }: Pick<RateLimit, "engine" | "until">): string {
  return `${engine} is rate limited; resumes at ${new Date(until).toISOString()}`;
}
