import { type Backoff, backoffMs } from "../base/backoff.ts";
import { cronFault, nextOccurrence } from "./cron.ts";
import { invalid } from "./error.ts";
import { isTimeZone } from "./field.ts";
import type { Task, TaskCreate, TaskPlan } from "./task.ts";

/** How far ahead a countdown has to be (interface 4.2, interface 8). */
const COUNTDOWN_LEAD_MIN_MS = 5_000;

const RETRY: Backoff = { firstMs: 1_000, lastMs: 16_000, factor: 4 };

/** Ms to wait before a lost run is tried again: 1, 4, 16 s (contract 3, Task). `attempt` counts from 1. */
export function retryDelayMs(attempt: number): number {
  return backoffMs(RETRY, attempt);
}

/** What a task's type needs or may have (interface 4.2, task create; contract 13, contract 15). */
const FIELDS_OF_TYPE = {
  immediate: ["verify"],
  countdown: ["scheduled_at", "name", "paused", "gate", "verify", "deliver_to"],
  scheduled: [
    ...["cron", "time_zone", "name", "paused", "gate", "verify", "deliver_to"],
    ...["overlap", "pause_after_failures", "until", "max_runs"],
  ],
};

/** Throws `invalid_request` for a field that does not go with the type of its task. */
export function checkFieldsOfType(type: Task["type"], input: Partial<Record<string, unknown>>): void {
  for (const name of FIELDS_OF_TYPE.scheduled.concat("scheduled_at")) {
    // What is false, 0, null or "" asks for nothing, and "skip" is what happens anyway.
    if (!input[name] || input[name] === "skip" || FIELDS_OF_TYPE[type].includes(name)) continue;
    throw invalid(name, `does not go with type ${type}; leave it out`);
  }
}

/**
 * Decides in which state a new task begins: to run at once, at its time, on its schedule, or cancelled with the
 * reason when its cron cannot fire (contract 3, Task). Throws `invalid_request` for fields that do not go with the
 * type, an unknown time zone, a countdown that is less than COUNTDOWN_LEAD_MIN_MS ahead, and an `until` before the first time.
 */
export function planTask(
  input: Pick<TaskCreate, "type" | "scheduled_at" | "cron" | "time_zone" | "until">,
  now: number,
  defaultZone: string,
): TaskPlan {
  checkFieldsOfType(input.type, input);
  const none = { reason: "", scheduled_at: null, cron: "", time_zone: "", next_run_at: null, due_at: null };
  if (input.type === "immediate") return { ...none, status: "pending", due_at: now };
  if (input.type === "countdown") {
    const at = countdownAt(input.scheduled_at, now);
    return { ...none, status: "scheduled", scheduled_at: at, next_run_at: at };
  }
  return planSchedule(input, now, defaultZone);
}

/** The time of a countdown. Throws `invalid_request` when it is less than COUNTDOWN_LEAD_MIN_MS ahead (interface 8). */
export function countdownAt(at: number | undefined, now: number): number {
  if (at === undefined) throw invalid("scheduled_at", "is missing; a countdown needs its time in Unix ms");
  if (at >= now + COUNTDOWN_LEAD_MIN_MS) return at;
  throw invalid(
    "scheduled_at",
    `must be at least 5 seconds ahead of the server's clock, which says ${now}`,
  );
}

function planSchedule(
  input: Pick<TaskCreate, "cron" | "time_zone" | "until">,
  now: number,
  defaultZone: string,
): TaskPlan {
  const { cron, time_zone = "", until = null } = input;
  if (cron === undefined) {
    throw invalid("cron", "is missing; a scheduled task needs five fields, such as 0 9 * * 1-5");
  }
  const base = { scheduled_at: null, cron, time_zone, due_at: null };
  const fault = cronFault(cron, zoneOf(time_zone, defaultZone), now);
  if (fault !== null) return { ...base, status: "cancelled", reason: fault, next_run_at: null };
  const next = nextRunAt({ cron, time_zone, until }, defaultZone, now);
  if (next === null) throw invalid("until", "no time of this cron falls before it");
  return { ...base, status: "scheduled", reason: "", next_run_at: next };
}

/** The zone that a cron is read in. Throws `invalid_request` for one that nobody knows. */
export function zoneOf(timeZone: string, defaultZone: string): string {
  const zone = timeZone === "" ? defaultZone : timeZone;
  if (!isTimeZone(zone)) throw invalid("time_zone", "must be a time zone such as Europe/Berlin or UTC");
  return zone;
}

/**
 * When a schedule fires next, strictly after `after`; null: never again. Nothing else works out `next_run_at`.
 * `defaultZone` is the zone of tasks that name none.
 */
export function nextRunAt(
  task: Pick<Task, "cron" | "time_zone" | "until">,
  defaultZone: string,
  after: number,
): number | null {
  const next = nextOccurrence(task.cron, task.time_zone || defaultZone, after);
  return next === null || task.until !== null && next > task.until ? null : next;
}
