import { isEndedTask } from "../../domain/call/vocabulary.ts";
import { findCronFault } from "../../domain/work/cron.ts";
import { previewCron } from "../../domain/work/cron.ts";
import { conflict, invalid } from "../../domain/call/error.ts";
import { parseJson } from "../../domain/call/json.ts";
import {
  optionFields,
  type PreviewedTime,
  type PreviewQuery,
  type ScheduleFilter,
} from "../../domain/work/schedule.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import type { Task, TaskUpdate } from "../../domain/work/task.ts";
import { checkFieldsOfType, planNextTime, resolveTimeZone } from "../../domain/work/task_plan.ts";
import { isRecurring, isTimed } from "../../domain/work/task_type.ts";
import {
  listSchedules as listScheduleRows,
  type ScheduleChange,
  type Timing,
  TIMING_FIELDS,
  updateSchedule,
} from "../../store/work/schedule.ts";
import { findTaskJson } from "../../store/work/task.ts";
import { findWorker } from "../../store/workers/worker.ts";
import { type Answer, answer, answerPage, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import { checkChainDepth } from "../call/chain_depth.ts";
import { checkCommands, checkDelivery } from "./task_commands.ts";
import type { Deps } from "../call/services.ts";

/** Lists schedules and countdowns, soonest first. */
export async function listSchedules({ db }: Deps<"db">, call: Call, filter: ScheduleFilter) {
  return answerPage(await listScheduleRows(db, filter, getBoundSessionKey(call.caller), filter));
}

/** Previews the next times of a cron. Throws `invalid_request` for a cron that cannot fire. */
export function previewSchedule(
  { clock, timeZone }: Deps<"clock" | "timeZone">,
  { cron, time_zone, count }: PreviewQuery,
): Promise<Answer<PreviewedTime[]>> {
  const zone = resolveTimeZone(time_zone, timeZone);
  const now = clock.now();
  const fault = findCronFault(cron, zone, now);
  if (fault !== null) throw invalid("cron", fault);
  return Promise.resolve(answer(previewCron(cron, zone, now, count)));
}

type UpdateDeps = Deps<"db" | "clock" | "engines" | "limits" | "runLimits" | "timeZone">;

// Another request may change a time between the read and the write.
const TRIES = 5;

/**
 * Updates a schedule or a countdown. Throws `not_found`, `invalid_request`, `forbidden` for a caller who cannot set
 * commands, and `conflict` for an ended or immediate task.
 */
export async function updateTask(
  deps: UpdateDeps,
  call: Call,
  id: string,
  input: TaskUpdate,
): Promise<Answer<Task>> {
  for (let tries = 0; tries < TRIES; tries++) {
    const done = await changeTask(deps, call, id, input);
    if (done !== null) return done;
  }
  throw conflict(
    `Cannot change task ${id}: another request changed, started or ended it. Get the task and try again.`,
  );
}

/** Changes a task like updateTask(), but returns null and writes nothing when the task changed between the read and the write. */
async function changeTask(
  deps: UpdateDeps,
  call: Call,
  id: string,
  input: TaskUpdate,
): Promise<Answer<Task> | null> {
  const { db, clock } = deps;
  const read = () => findTaskJson(db, id, getBoundSessionKey(call.caller));
  const json = requireFound(await read(), "task", id);
  const task = parseJson(json);
  checkChangeable(task);
  const now = clock.now();
  const changes = findChanges(task, input);
  if (Object.keys(changes).length === 0) return { json };
  await checkChange(deps, call, task, changes);
  // A run that changes its schedule adds no depth, or the schedule would soon reach the chain limit.
  const isOwn = call.caller.run?.task_id === id;
  const chain = isOwn ? {} : { depth: await checkChainDepth(deps, call, "change the task") };
  const change = { ...changes, ...planTimes(deps, task, changes, call, now), ...chain };
  const waiting = !isRecurring(task.type) && (changes.scheduled_at !== undefined || changes.paused === false);
  const { won } = await db.write([
    ...updateSchedule(id, change, { waiting, asRead: findTimeBasis(task, change) }, now),
    recordBy(call, now, {
      kind: "task.updated",
      session_key: task.session_key,
      worker_id: change.worker_id ?? task.worker_id,
      message_id: task.message_id,
      task_id: id,
      data: { fields: Object.keys(changes) },
    }),
  ]);
  return won ? { json: await read() ?? json } : null;
}

// The fields that the next time was computed from must be unchanged, except those that this change sets.
function findTimeBasis(task: Task, change: ScheduleChange): Timing {
  if (change.next_run_at === undefined) return {};
  const names = TIMING_FIELDS.filter((name) => change[name] === undefined);
  return Object.fromEntries(names.map((name) => [name, task[name]]));
}

function checkChangeable(task: Task): void {
  const cannot = `Cannot change task ${task.id}: it is`;
  if (!isTimed(task.type)) {
    throw conflict(`${cannot} ${task.type}. Only schedules and countdowns can be changed.`);
  }
  if (isEndedTask(task.status)) throw conflict(`${cannot} ${task.status}. Create a new task.`);
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

// A client can send back what GET returned, so an equal value is no change.
function findChanges(task: Task, input: TaskUpdate): Change {
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
  // A run that changes the work or the times also decides where the result is delivered.
  const changesWork = WORK.some((name) => change[name] !== undefined);
  checkDelivery(call, change.deliver_to ?? (changesWork ? task.deliver_to : undefined));
  const { worker_id = task.worker_id, gate = task.gate, verify = task.verify } = change;
  const worker = await findWorker(db, worker_id);
  if (worker === null) throw invalid("worker_id", `no worker has the id ${JSON.stringify(worker_id)}`);
  checkCommands({ call, engines, engine: worker.engine }, { gate: change.gate, verify: change.verify });
  // Another worker's engine may lack the setting for running commands.
  if (change.worker_id !== undefined) {
    checkCommands({ call: null, engines, engine: worker.engine }, { gate, verify });
  }
  if (change.max_runs !== undefined && change.max_runs !== null && change.max_runs <= task.runs_ended) {
    throw invalid("max_runs", `must be higher than the ${task.runs_ended} runs that have ended`);
  }
}

// New times and pauses change the next run. A resumed schedule never catches up on missed runs.
function planTimes(
  { timeZone }: Deps<"timeZone">,
  task: Task,
  changes: Change,
  call: Call,
  now: number,
): ScheduleChange {
  const paused = changes.paused ?? task.paused;
  const isMoved = (["cron", "time_zone", "scheduled_at", "until"] as const).some((name) =>
    changes[name] !== undefined
  );
  const pause: ScheduleChange = changes.paused === true
    ? { reason: `paused by ${call.caller.subject}`, queued_at: null }
    : changes.paused === false
    ? { reason: "", failures_in_row: 0 }
    : {};
  if (!isMoved && (paused || changes.paused === undefined)) return pause;
  return {
    ...pause,
    next_run_at: planNextTime({ ...task, ...changes }, changes.scheduled_at, now, timeZone),
  };
}
