import type { Listing, Page } from "../../domain/call/page.ts";
import type { ScheduleFilter } from "../../domain/work/schedule.ts";
import type { Task } from "../../domain/work/task.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { type Database, guard, type Statement, type Value } from "../db/database.ts";
import { buildWhere, type Filters, limitToConversation, matchAny, matchReference } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { TASK_IS_ACTIVE, TASK_IS_TIMED } from "../db/status_sql.ts";
import { TASKS } from "./task.ts";

// The expression of the index task_soonest.
const SOONEST = "iif(task.paused = 1 or task.next_run_at is null, 9007199254740991, task.next_run_at)";

const FILTERS: Filters<ScheduleFilter> = {
  ref: matchReference("task", { column: "name", key: (name) => name }),
  // The + keeps SQLite from using an index, because the order has one.
  status: matchAny("+task.status"),
  worker_id: matchAny("task.worker_id"),
  paused: ({ conditions, args }, paused) => {
    conditions.push("+task.paused = ?");
    args.push(paused);
  },
  failing: ({ conditions }, failing) => {
    conditions.push(failing ? "task.failures_in_row > 0" : "+task.failures_in_row = 0");
  },
};

/** Lists schedules and countdowns, the soonest first, and those without a next time last (contract 15). */
export function listSchedules(
  db: Database,
  filter: ScheduleFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Task>> {
  const where = buildWhere(filter, FILTERS);
  where.conditions.push(`task.type ${TASK_IS_TIMED}`);
  limitToConversation(where, "task.session_key", boundTo);
  const selective = filter.worker_id ?? filter.ref ?? boundTo;
  const from = selective === undefined || selective === null ? "task indexed by task_soonest" : "task";
  return list(db, { ...TASKS, from, order: SOONEST, where }, page);
}

export type ScheduleChange =
  & Partial<
    Pick<
      Task,
      | "name"
      | "instruction"
      | "cron"
      | "time_zone"
      | "scheduled_at"
      | "worker_id"
      | "paused"
      | "overlap"
      | "pause_after_failures"
      | "deliver_to"
      | "until"
      | "max_runs"
      | "gate"
      | "verify"
      | "next_run_at"
      | "failures_in_row"
      | "reason"
    >
  >
  & { queued_at?: null; depth?: number };

export const TIMING_FIELDS = ["cron", "time_zone", "scheduled_at", "until"] as const;

export type Timing = Partial<Pick<Task, (typeof TIMING_FIELDS)[number]>>;

interface ScheduleGuard {
  waiting?: boolean;
  /** Columns that still have the values that the caller read. */
  asRead?: Timing;
}

/** Changes the given columns, guarded by the task being active and by `guard`. */
export function updateSchedule(
  id: string,
  change: ScheduleChange,
  { waiting = false, asRead = {} }: ScheduleGuard,
  now: number,
): Statement[] {
  const entries = Object.entries(change) as [string, Value | object][];
  // The depth of a chain of tasks never decreases.
  const set = entries.map(([name]) => name === "depth" ? "depth = max(depth, ?)" : `${name} = ?`);
  const args = entries.map(([name, value]) =>
    name === "gate" || name === "verify" ? JSON.stringify(value) : value as Value
  );
  const unchanged = Object.entries(asRead) as [string, Value][];
  const where = ["id = ?", `status ${TASK_IS_ACTIVE}`, ...unchanged.map(([name]) => `${name} is ?`)];
  if (waiting) where.push("+status = 'scheduled'");
  return guard(
    `update task set ${[...set, "updated_at = ?"].join(", ")} where ${where.join(" and ")}`,
    [...args, now, id, ...unchanged.map(([, value]) => value)],
    WAKEUP.scheduler,
  );
}
