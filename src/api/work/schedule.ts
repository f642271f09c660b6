import { isEndedTask } from "../../domain/call/vocabulary.ts";
import { cronFault } from "../../domain/work/cron.ts";
import { previewCron } from "../../domain/work/cron.ts";
import { conflict, invalid, notFound } from "../../domain/call/error.ts";
import { valueOf } from "../../domain/call/json.ts";
import {
  optionFields,
  type PreviewedTime,
  type PreviewQuery,
  type ScheduleFilter,
} from "../../domain/work/schedule.ts";
import { boundTo } from "../../domain/call/scope.ts";
import type { Task, TaskUpdate } from "../../domain/work/task.ts";
import { checkFieldsOfType, nextTimeOf, zoneOf } from "../../domain/work/task_plan.ts";
import { isRecurring, isTimed } from "../../domain/work/task_type.ts";
import { record } from "../../store/events/journal.ts";
import {
  listSchedules as listScheduleRows,
  type ScheduleChange,
  TIMED_BY,
  type TimedBy,
  updateSchedule,
} from "../../store/work/schedule.ts";
import { findTaskJson } from "../../store/work/task.ts";
import { findWorker } from "../../store/workers/worker.ts";
import { type Answer, answer, page } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import { chainDepth } from "../call/chain_depth.ts";
import { checkCommands, checkDelivery } from "./task_commands.ts";
import type { Deps } from "../call/services.ts";

/** GET /api/schedules: schedules and countdowns, soonest first (contract 15). */
export async function listSchedules(
  { db }: Deps<"db">,
  call: Call,
  filter: ScheduleFilter,
): Promise<Answer<Task[]>> {
  return page(await listScheduleRows(db, filter, boundTo(call.caller), filter));
}

/** GET /api/schedules/preview (contract 15). Throws `invalid_request` for a cron that cannot fire. */
export function previewSchedule(
  { clock, timeZone }: Deps<"clock" | "timeZone">,
  { cron, time_zone, count }: PreviewQuery,
): Promise<Answer<PreviewedTime[]>> {
  const zone = zoneOf(time_zone, timeZone);
  const now = clock.now();
  const fault = cronFault(cron, zone, now);
  if (fault !== null) throw invalid("cron", fault);
  return Promise.resolve(answer(previewCron(cron, zone, now, count)));
}

type UpdateNeeds = Deps<"db" | "clock" | "engines" | "limits" | "runLimits" | "timeZone">;

// Somebody else may change a time between the read and the write.
const TRIES = 5;

/**
 * PUT /api/tasks/:id for a schedule or a countdown: an absent field stays unchanged (contract 15). Throws `not_found`,
 * `invalid_request`, `forbidden` for who may not set commands, `conflict` for a task that has ended or is immediate.
 */
export async function updateTask(
  needs: UpdateNeeds,
  call: Call,
  id: string,
  input: TaskUpdate,
): Promise<Answer<Task>> {
  for (let tries = 0; tries < TRIES; tries++) {
    const done = await changeTask(needs, call, id, input);
    if (done !== null) return done;
  }
  throw conflict(`Cannot change task ${id}: it was changed, started or ended meanwhile; look again`);
}

/** As updateTask(); null: what it read was changed before it could write, and nothing was written. */
async function changeTask(
  needs: UpdateNeeds,
  call: Call,
  id: string,
  input: TaskUpdate,
): Promise<Answer<Task> | null> {
  const { db, clock } = needs;
  const read = () => findTaskJson(db, id, boundTo(call.caller));
  const json = await read();
  if (json === null) throw notFound("task", id);
  const task = valueOf(json);
  checkChangeable(task);
  const now = clock.now();
  const asked = changed(task, input);
  if (Object.keys(asked).length === 0) return { json };
  await checkChange(needs, call, task, asked);
  // A schedule that its own run changes begins nothing new: it would be at the end of its chain after some runs.
  const isOwn = call.caller.run?.task_id === id;
  const chain = isOwn ? {} : { depth: await chainDepth(needs, call, "change the task") };
  const change = { ...asked, ...timesOf(needs, task, asked, call, now), ...chain };
  const waiting = !isRecurring(task.type) && (asked.scheduled_at !== undefined || asked.paused === false);
  const { won } = await db.write([
    ...updateSchedule(id, change, { waiting, asRead: basisOf(task, change) }, now),
    record(now, {
      kind: "task.updated",
      session_key: task.session_key,
      worker_id: change.worker_id ?? task.worker_id,
      message_id: task.message_id,
      task_id: id,
      actor: call.caller.subject,
      data: { fields: Object.keys(asked) },
    }),
  ]);
  return won ? { json: await read() ?? json } : null;
}

// What the new next time was worked out from. What the change itself writes need not be as it was read.
function basisOf(task: Task, change: ScheduleChange): TimedBy {
  if (change.next_run_at === undefined) return {};
  const names = TIMED_BY.filter((name) => change[name] === undefined);
  return Object.fromEntries(names.map((name) => [name, task[name]]));
}

function checkChangeable(task: Task): void {
  const cannot = `Cannot change task ${task.id}: it is`;
  if (!isTimed(task.type)) {
    throw conflict(`${cannot} ${task.type}; only schedules and countdowns can be changed`);
  }
  if (isEndedTask(task.status)) throw conflict(`${cannot} ${task.status}; make a new one`);
}

type Change = Omit<ScheduleChange, "depth" | "next_run_at" | "failures_in_row" | "reason" | "queued_at">;

const CHANGEABLE = [
  ...new Set([
    "name",
    "instruction",
    "cron",
    "time_zone",
    "scheduled_at",
    "worker_id",
    ...Object.keys(optionFields),
  ]),
] as (keyof Change)[];

const WORK = ["instruction", "worker_id", "cron", "time_zone", "scheduled_at", "paused"] as const;

// What GET answered can be sent back (contract 1.2), so a field with its present value is no change.
function changed(task: Task, input: TaskUpdate): Change {
  const names = CHANGEABLE.filter((name) =>
    input[name] !== undefined && JSON.stringify(input[name]) !== JSON.stringify(task[name])
  );
  return Object.fromEntries(names.map((name) => [name, input[name]]));
}

async function checkChange(
  { db, engines }: Deps<"db" | "engines">,
  call: Call,
  task: Task,
  change: Change,
): Promise<void> {
  checkFieldsOfType(task.type, change);
  // Whose work or time a run changes, of that it decides what is delivered.
  const changesWork = WORK.some((name) => change[name] !== undefined);
  checkDelivery(call, change.deliver_to ?? (changesWork ? task.deliver_to : undefined));
  const { worker_id = task.worker_id, gate = task.gate, verify = task.verify } = change;
  const worker = await findWorker(db, worker_id);
  if (worker === null) throw invalid("worker_id", `no worker has the id ${JSON.stringify(worker_id)}`);
  checkCommands({ call, engines, engine: worker.engine }, { gate: change.gate, verify: change.verify });
  // Another worker's engine may need to be told how a command is run.
  if (change.worker_id !== undefined) {
    checkCommands({ call: null, engines, engine: worker.engine }, { gate, verify });
  }
  if (change.max_runs !== undefined && change.max_runs !== null && change.max_runs <= task.runs_ended) {
    throw invalid("max_runs", `it has run ${task.runs_ended} times already`);
  }
}

/** What a change of times, or a pause and its end, does to the next time. Resuming never catches up (contract 15). */
function timesOf(
  { timeZone }: Deps<"timeZone">,
  task: Task,
  asked: Change,
  call: Call,
  now: number,
): ScheduleChange {
  const paused = asked.paused ?? task.paused;
  const moved = (["cron", "time_zone", "scheduled_at", "until"] as const).some((name) =>
    asked[name] !== undefined
  );
  const pausing: ScheduleChange = asked.paused === true
    ? { reason: `paused by ${call.caller.subject}`, queued_at: null }
    : asked.paused === false
    ? { reason: "", failures_in_row: 0 }
    : {};
  if (!moved && (paused || asked.paused === undefined)) return pausing;
  return { ...pausing, next_run_at: nextTimeOf({ ...task, ...asked }, asked.scheduled_at, now, timeZone) };
}
