import type { Listing, Page } from "../domain/page.ts";
import type { ScheduleFilter } from "../domain/schedule.ts";
import type { Task } from "../domain/task.ts";
import { BELL } from "../base/bells.ts";
import { type Database, guarded, type Statement, type Value } from "./database.ts";
import { type Filters, inConversation, named, oneOf, whereOf } from "./filter.ts";
import { list } from "./list.ts";
import { TASK_IS_ACTIVE } from "./status.ts";
import { TASK_JSON, TASK_TEXTS } from "./task.ts";

// As in the index task_soonest.
const SOONEST = "iif(task.paused = 1 or task.next_run_at is null, 9007199254740991, task.next_run_at)";

const FILTERS: Filters<ScheduleFilter> = {
  ref: named("task"),
  // With + no index is used for it: the order has one.
  status: oneOf("+task.status"),
  worker_id: oneOf("task.worker_id"),
  paused: ({ conditions, args }, paused) => {
    conditions.push("+task.paused = ?");
    args.push(paused);
  },
  failing: ({ conditions }, failing) => {
    conditions.push(failing ? "task.failures_in_row > 0" : "+task.failures_in_row = 0");
  },
};

/** Schedules and countdowns, soonest first; then those that have no next time (contract 15). */
export function listSchedules(
  db: Database,
  filter: ScheduleFilter,
  boundTo: string | null,
  page: Page,
): Promise<Listing<Task>> {
  const where = whereOf(filter, FILTERS);
  where.conditions.push("task.type in ('countdown', 'scheduled')");
  inConversation(where, "task.session_key", boundTo);
  const narrow = filter.worker_id ?? filter.ref ?? boundTo;
  const from = narrow === undefined || narrow === null ? "task indexed by task_soonest" : "task";
  return list(db, { table: "task", from, order: SOONEST, json: TASK_JSON, texts: TASK_TEXTS, where }, page);
}

/** What an update of a schedule changes, in the columns of its row. */
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

/** Changes the named columns only, guarded by the task's being active, and by its waiting when `waiting` says so. */
export function updateSchedule(
  id: string,
  change: ScheduleChange,
  waiting: boolean,
  now: number,
): Statement[] {
  const entries = Object.entries(change) as [string, Value | object][];
  // A chain of tasks never gets shorter.
  const set = entries.map(([name]) => name === "depth" ? "depth = max(depth, ?)" : `${name} = ?`);
  const args = entries.map(([name, value]) =>
    name === "gate" || name === "verify" ? JSON.stringify(value) : value as Value
  );
  return guarded(
    `update task
    set ${[...set, "updated_at = ?"].join(", ")}
    where id = ? and status ${TASK_IS_ACTIVE} ${waiting ? "and +status = 'scheduled'" : ""}`,
    [...args, now, id],
    BELL.scheduler,
  );
}
