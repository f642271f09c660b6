import { type Block, formatResume } from "../work/block.ts";
import { type Backoff, backoffMs } from "../../base/backoff.ts";

/** A rate limit of an engine's provider. No run starts before `until`. */
export interface RateLimit {
  engine: string;
  /** Unix ms. */
  until: number;
  /** Consecutive runs that met the limit, each after the previous wait. */
  strikes: number;
  /** When the engine became limited. */
  since: number;
  /** 1 when the provider named `until`. */
  announced: number;
}

// Delays for a provider that names no time: 1, 4, 16 minutes, then an hour each.
const RETRY: Backoff = { firstMs: 60_000, lastMs: 3_600_000, factor: 4 };
const WAIT_MIN_MS = 1_000;
// The longest known quotas are weekly. A later time must be an error.
const WAIT_MAX_MS = 8 * 86_400_000;

/** A task fails after this many runs that met a limit, so that it does not wait forever. */
export const LIMITED_RUNS_MAX = 20;

/** The service announces a wait of at least this length to the person who waits for the reply. */
export const ANNOUNCED_WAIT_MS = 60_000;

/**
 * Returns the limit after a run met one. `resetsAt` is its end, or null when unknown. From the second strike on, a time that has passed
 * counts as unknown. Runs that meet a limit together count as one strike.
 */
export function computeNextLimit(
  engine: string,
  before: RateLimit | null,
  resetsAt: number | null,
  now: number,
): RateLimit {
  const waiting = before !== null && before.until > now;
  const strikes = waiting ? before.strikes : (before?.strikes ?? 0) + 1;
  // The provider may repeat a time that has passed. Retrying each second would use up all limited runs of a task in less than a minute.
  const end = strikes > 1 && resetsAt !== null && resetsAt <= now ? null : resetsAt;
  const unclamped = end === null ? backoffMs(RETRY, strikes) : end - now;
  const wait = Math.min(Math.max(unclamped, WAIT_MIN_MS), WAIT_MAX_MS);
  // Tasks that already wait do not restart their wait when the provider names no time.
  if (waiting && end === null) return before;
  const until = Math.ceil(Math.max(now + wait, waiting ? before.until : 0));
  const isOngoing = waiting || end === null && strikes > 1;
  const isEarlierEnd = waiting && until === before.until;
  return {
    ...{ engine, until, strikes },
    since: isOngoing ? before?.since ?? now : now,
    announced: isEarlierEnd ? before.announced : end === null ? 0 : 1,
  };
}

/** Whether an engine is limited for at least `forMs`. An end that the provider did not name is unknown, so only the time so far counts. */
export function isLongLimit(
  { until, since, announced }: Pick<RateLimit, "until" | "since" | "announced">,
  forMs: number,
  now: number,
): boolean {
  return (announced === 1 ? until : now) - since >= forMs;
}

/** Returns the block of an engine's tasks during a limit (contract 14). */
export function buildEngineBlock(limit: Pick<RateLimit, "engine" | "until">): Block {
  return {
    held: `engine:${limit.engine}`,
    until: limit.until,
    reason: formatWaitReason(limit),
    whom: { kind: "all" },
  };
}

/** Formats why a task waits, for its `reason`. */
export function formatWaitReason({ engine, until }: Pick<RateLimit, "engine" | "until">): string {
  return `${engine} is rate limited${formatResume(until)}`;
}
