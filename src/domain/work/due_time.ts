import type { MissedOccurrences } from "./cron.ts";
import type { Task } from "./task.ts";

/** The due times of a schedule, and the next one, or null for none. */
interface DueTimes {
  found: MissedOccurrences | null;
  next: number | null;
  now: number;
  catchUpWindowMs: number;
}

/** The fields of a schedule that decide about a due time. `gating` is 1 while its gate runs. */
type DueSchedule = Pick<Task, "overlap"> & {
  status: string;
  gating: number;
  next_run_at: number;
  queued_at: number | null;
};

type Overlap = "skip" | "queue" | "replace";

/**
 * The action for the latest due time `at`. `count` is the number of times without a run.
 * `move`: the cron has no such time, so only the next time changes. `miss`: the latest time is too old to run.
 * `complete`: it is too old, and no time follows.
 */
export interface DueDecision {
  kind: "move" | "fire" | "miss" | "complete" | Overlap;
  at: number;
  count: number;
}

/** Decides what happens when a schedule falls due (contract 3, Task; contract 15). */
export function decideDueTime(
  schedule: DueSchedule,
  { found, next, now, catchUpWindowMs }: DueTimes,
): DueDecision {
  const { latest: at, count } = found ?? { latest: schedule.next_run_at, count: 1 };
  if (schedule.status !== "scheduled") return { kind: decideOverlap(schedule), at, count };
  // The time zone has changed since the time was planned.
  if (found === null && next !== null) return { kind: "move", at, count: 0 };
  if (now - at <= catchUpWindowMs) return { kind: "fire", at, count: count - 1 };
  return { kind: next === null ? "complete" : "miss", at, count };
}

// A run that has not started yet already is the queued one.
function decideOverlap({ overlap, status, gating, queued_at }: DueSchedule): Overlap {
  const hasStarted = status === "running" || gating === 1;
  if (!hasStarted || overlap === "skip" || overlap === "queue" && queued_at !== null) return "skip";
  // A gate notices its replacement on its own, so only a run must be ended.
  return overlap === "replace" && status === "running" ? "replace" : "queue";
}
