import { newId } from "../../base/id.ts";
import type { PlannedChange } from "../../domain/workers/fleet_plan.ts";
import { scriptSessionKey } from "../../domain/chat/message.ts";
import { nameKey } from "../../domain/call/name.ts";
import type { ScheduleOptions } from "../../domain/work/schedule.ts";
import { newTask } from "../../domain/work/task.ts";
import { nextRunAt, planTask } from "../../domain/work/task_plan.ts";
import type { Statement } from "../../store/db/database.ts";
import { manage } from "../../store/workers/fleet.ts";
import { record } from "../../store/events/journal.ts";
import { cancelOccurrence } from "../../store/work/occurrence.ts";
import { type ScheduleChange, updateSchedule } from "../../store/work/schedule.ts";
import { insertTask } from "../../store/work/task.ts";
import { cancelTask } from "../../store/work/task_transitions.ts";

interface WantedSchedule {
  worker: string;
  instruction: string;
  cron: string;
  time_zone: string;
}

interface ScheduleContext {
  fleet: string;
  actor: string;
  now: number;
  /** Worker ids by nameKey(). */
  workers: ReadonlyMap<string, string>;
}

/** Builds the statements of one schedule change. `timeZone` is the default zone. */
export function scheduleStatements(
  timeZone: string,
  { action, name, present, wanted, fields: changed }: PlannedChange,
  { fleet, actor, now, workers }: ScheduleContext,
): Statement[] {
  const id = present?.id ?? newId();
  if (action === "delete") {
    return [
      ...cancelTask(id, `left out of the fleet by ${actor}`, now),
      cancelOccurrence(id, now),
      record(now, { kind: "task.cancelled", task_id: id, actor, data: { name } }),
    ];
  }
  const { worker, ...fields } = wanted?.fields as unknown as ScheduleOptions & WantedSchedule;
  const worker_id = workers.get(nameKey(worker)) ?? "";
  const statements: Statement[] = [];
  if (action === "create") {
    const message_id = `fleet-${id}`;
    const origin = { message_id, session_key: scriptSessionKey(message_id) };
    const plan = planTask({ type: "scheduled", ...fields }, now, timeZone);
    const task = newTask(
      { ...fields, ...origin, id, name, worker_id, type: "scheduled", created_by: actor },
      plan,
      now,
    );
    statements.push(
      ...insertTask({ ...task, due_at: null, parent_task_id: null, depth: 0 }),
      record(now, {
        kind: "task.created",
        ...origin,
        worker_id,
        task_id: id,
        actor,
        data: { type: "scheduled", name },
      }),
    );
  } else if (action === "update") {
    const names = changed.map((one) => one.name === "worker" ? "worker_id" : one.name);
    const all: Record<string, unknown> = { ...fields, name, worker_id };
    // Changed times and the end of a pause change the next run, which never catches up.
    const next = nextRunAt(fields, timeZone, now);
    const times = names.some((one) => ["cron", "time_zone", "until", "paused"].includes(one))
      ? { next_run_at: next }
      : {};
    const resumed = names.includes("paused") && !fields.paused ? { failures_in_row: 0, reason: "" } : {};
    const paused = names.includes("paused") && fields.paused ? { queued_at: null } : {};
    const given = Object.fromEntries(names.map((one) => [one, all[one]]));
    const change = { ...given, ...times, ...resumed, ...paused };
    statements.push(
      ...updateSchedule(id, change as ScheduleChange, {}, now),
      record(now, { kind: "task.updated", worker_id, task_id: id, actor, data: { fields: names } }),
    );
  }
  return [...statements, manage("schedule", id, fleet)];
}
