import { findCronFault, findNextOccurrence } from "./cron.ts";
import { conflict, invalid } from "../call/error.ts";
import { isTimeZone } from "../call/field.ts";
import type { Task, TaskCreate, TaskPlan } from "./task.ts";
import { isRecurring } from "./task_type.ts";
import { TASK_TYPE_RULES } from "../call/vocabulary.ts";

const COUNTDOWN_LEAD_MIN_MS = 5_000;

// Fields that only some types have.
const FIELDS_OF_TYPES = new Set(Object.values(TASK_TYPE_RULES).flatMap(({ fields }) => fields));

/** Throws `invalid_request` for a field that the task type does not have. */
export function checkFieldsOfType(type: Task["type"], input: Partial<Record<string, unknown>>): void {
  const { fields } = TASK_TYPE_RULES[type];
  for (const name of FIELDS_OF_TYPES) {
    // False, 0, null, "" and an empty list request nothing, and "skip" and "success" are defaults.
    const value = input[name];
    if (!value || value === "skip" || value === "success" || fields.includes(name)) continue;
    if (Array.isArray(value) && value.length === 0) continue;
    throw invalid(name, `does not apply to type ${type}; omit it`);
  }
}

type PlanInput = Pick<
  TaskCreate,
  "type" | "scheduled_at" | "cron" | "time_zone" | "until" | "after" | "after_when"
>;

const UNTIMED = {
  reason: "",
  scheduled_at: null,
  cron: "",
  time_zone: "",
  next_run_at: null,
  due_at: null,
} as const;

const PLANS: Record<Task["type"], (input: PlanInput, now: number, defaultZone: string) => TaskPlan> = {
  immediate: (_input, now) => ({ ...UNTIMED, status: "pending", due_at: now }),
  countdown: planCountdown,
  scheduled: planSchedule,
};

/**
 * Plans the initial state of a task: pending, scheduled, or cancelled with the reason when its cron cannot fire (contract 3,
 * Task). Throws `invalid_request` for fields of other types, an unknown time zone, a countdown less than
 * COUNTDOWN_LEAD_MIN_MS ahead, and an `until` before the first time.
 */
export function planTask(input: PlanInput, now: number, defaultZone: string): TaskPlan {
  checkFieldsOfType(input.type, input);
  return PLANS[input.type](input, now, defaultZone);
}

function planCountdown({ scheduled_at }: PlanInput, now: number): TaskPlan {
  const at = checkCountdown(scheduled_at, now);
  return { ...UNTIMED, status: "scheduled", scheduled_at: at, next_run_at: at };
}

/** Validates the time of a countdown. Throws `invalid_request` when it is less than COUNTDOWN_LEAD_MIN_MS ahead. */
function checkCountdown(at: number | undefined, now: number): number {
  if (at === undefined) throw invalid("scheduled_at", "is missing; a countdown needs its time in Unix ms");
  if (at >= now + COUNTDOWN_LEAD_MIN_MS) return at;
  throw invalid(
    "scheduled_at",
    `must be at least 5 seconds ahead of the server's clock, which says ${new Date(now).toISOString()}`,
  );
}

function planSchedule(input: PlanInput, now: number, defaultZone: string): TaskPlan {
  const { cron, time_zone = "", until = null } = input;
  if (cron === undefined) {
    throw invalid("cron", "is missing; a scheduled task needs five fields, such as 0 9 * * 1-5");
  }
  const base = { ...UNTIMED, cron, time_zone };
  const fault = findCronFault(cron, resolveTimeZone(time_zone, defaultZone), now);
  if (fault !== null) return { ...base, status: "cancelled", reason: fault };
  const next = findNextRunAt({ cron, time_zone, until }, defaultZone, now);
  if (next === null) throw invalid("until", "the cron has no time before it");
  return { ...base, status: "scheduled", next_run_at: next };
}

/** Returns the time zone of a cron. Throws `invalid_request` for an unknown one. */
export function resolveTimeZone(timeZone: string, defaultZone: string): string {
  const zone = timeZone === "" ? defaultZone : timeZone;
  if (!isTimeZone(zone)) throw invalid("time_zone", "must be a time zone such as Europe/Berlin or UTC");
  return zone;
}

/**
 * Returns the next time of a schedule strictly after `after`, or null. No other function computes `next_run_at`.
 * `defaultZone` applies to tasks without a zone.
 */
export function findNextRunAt(
  task: Pick<Task, "cron" | "time_zone" | "until">,
  defaultZone: string,
  after: number,
): number | null {
  const next = findNextOccurrence(task.cron, task.time_zone || defaultZone, after);
  return next === null || task.until !== null && next > task.until ? null : next;
}

/**
 * Returns the next time of a resumed task, or of one with changed times. `moved` is the new time of a countdown. Throws
 * `invalid_request`, and `conflict` for a countdown whose time has passed.
 */
export function planNextTime(
  task: Task,
  moved: number | null | undefined,
  now: number,
  defaultZone: string,
): number {
  if (!isRecurring(task.type)) {
    if (moved !== undefined) return checkCountdown(moved ?? undefined, now);
    const at = task.scheduled_at ?? 0;
    if (at > now) return at;
    throw conflict(
      `Cannot resume task ${task.id}: its time has passed. Set a new scheduled_at or run it now.`,
    );
  }
  const fault = findCronFault(task.cron, resolveTimeZone(task.time_zone, defaultZone), now);
  if (fault !== null) throw invalid("cron", fault);
  const next = findNextRunAt(task, defaultZone, now);
  if (next === null) throw invalid("until", "the cron has no time before it");
  return next;
}
