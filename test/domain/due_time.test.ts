import { expect, it } from "vitest";
import { decideDueTime } from "../../src/domain/work/due_time.ts";

const NOW = 10_000_000;
const WINDOW_MS = 3_600_000;
const NEXT = NOW + 600_000;
const FOUND = { latest: NOW - 1_000, count: 3 };
const WAITS = { status: "scheduled", gating: 0, queued_at: null };
const RUNS = { ...WAITS, status: "running" };
const GATES = { ...WAITS, status: "pending", gating: 1 };
const PENDING = { ...WAITS, status: "pending" };

it.each(
  [
    ["fires at the latest due time, and counts the times before it", WAITS, "skip", {}, "fire", 2],
    ["fires at the end of the catch-up window", WAITS, "skip", { latest: NOW - WINDOW_MS }, "fire", 2],
    ["does not fire after the window", WAITS, "skip", { latest: NOW - WINDOW_MS - 1 }, "miss", 3],
    ["fires its last time", WAITS, "skip", { next: null }, "fire", 2],
    ["ends when its last time is too old", WAITS, "skip", { latest: 0, next: null }, "complete", 3],
    ["moves a time that its cron does not have", WAITS, "skip", { found: null }, "move", 0],
    ["fires such a time when no other follows", WAITS, "skip", { found: null, next: null }, "fire", 0],
    ["skips a time during its run", RUNS, "skip", {}, "skip", 3],
    ["skips a time before its run has started", PENDING, "skip", {}, "skip", 3],
    ["queues a time during its run", RUNS, "queue", {}, "queue", 3],
    ["queues a time during its gate", GATES, "queue", {}, "queue", 3],
    ["queues one time only", { ...RUNS, queued_at: 1 }, "queue", {}, "skip", 3],
    ["queues nothing before its run has started", PENDING, "queue", {}, "skip", 3],
    ["replaces its run", RUNS, "replace", {}, "replace", 3],
    ["replaces its run again", { ...RUNS, queued_at: 1 }, "replace", {}, "replace", 3],
    ["queues the replacement of its gate", GATES, "replace", {}, "queue", 3],
    ["replaces nothing before its run has started", PENDING, "replace", {}, "skip", 3],
  ] as const,
)("decideDueTime() %s (contract 15)", (_what, state, overlap, change, kind, count) => {
  const { latest = FOUND.latest, ...times } = { found: { ...FOUND }, next: NEXT, ...change } as {
    found: typeof FOUND | null;
    next: number | null;
    latest?: number;
  };
  const found = times.found === null ? null : { ...times.found, latest };
  const schedule = { ...state, overlap, next_run_at: FOUND.latest };
  expect(decideDueTime(schedule, { found, next: times.next, now: NOW, catchUpWindowMs: WINDOW_MS }))
    .toEqual({ kind, at: latest, count });
});
