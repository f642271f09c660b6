// scheduled -> pending, when a countdown's or a schedule's time has come, or a time that waited for the turn before
import { allEnded } from "../../base/settle_all.ts";
import type { Clock } from "../../base/clock.ts";
import { missedOccurrences } from "../../domain/work/cron.ts";
import { nextRunAt } from "../../domain/work/task_plan.ts";
import type { JournalEntry } from "../../domain/system/journal.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { logger } from "../../base/log.ts";
import { type Database, isDuplicate, type Statement } from "../../store/db/database.ts";
import { dueAfterStepBack, settleByNow } from "../../store/work/clock_back.ts";
import { latestEventAt, moved, record } from "../../store/events/journal.ts";
import { insertOccurrence } from "../../store/work/occurrence.ts";
import { markReplaced } from "../../store/work/execution.ts";
import {
  closeSchedule,
  dropQueued,
  fireCountdown,
  fireQueued,
  fireSchedule,
  queueOccurrence,
  skipOccurrence,
} from "../../store/work/schedule_transitions.ts";
import {
  type DueTask,
  earliestRunAt,
  listDueTasks,
  listQueuedTasks,
  listSchedulesAfter,
} from "../../store/work/task_queue.ts";
import { WAKEUP, type Wakeups } from "../../base/wakeups.ts";
import { Stage } from "../stage/stage.ts";

const log = logger("scheduler");

const TASKS_PER_ROUND = 500;
// A smaller correction of the wall clock does not count as setting it back.
const STEP_BACK_MS = 30_000;
// A schedule without a next time is checked again after so long.
const LATER_MS = 24 * 60 * 60 * 1000;

/** What the scheduler works with. */
interface SchedulerOptions {
  db: Database;
  clock: Clock;
  wakeups: Wakeups;
  defaultZone: string;
  /** A missed time still fires when it is not older than this (contract 3, Task). */
  catchUpWindowMs: number;
  /** Ends a run whose place another time takes (contract 15). */
  interruptRun: (executionId: string) => Promise<void>;
}

/** Fires what is due: never early, at most once per task and minute. Its cost grows with what is due, not with what is stored. */
export function createScheduler(options: SchedulerOptions): Stage {
  const { db, clock, wakeups, defaultZone, catchUpWindowMs, interruptRun } = options;
  let latestNow: number | null = null;
  return new Stage({ name: "scheduler", wakeup: WAKEUP.scheduler, clock, wakeups, step });

  async function step(): Promise<number> {
    const now = clock.now();
    await followClock(now);
    const [queued, due] = await Promise.all([
      listQueuedTasks(db, TASKS_PER_ROUND),
      listDueTasks(db, now, TASKS_PER_ROUND),
    ]);
    if (queued.length + due.length > 0) {
      await allEnded([
        ...queued.map((task) => fireWaiting(task, now)),
        ...due.map((task) => fire(task, now)),
      ]);
    }
    if (Math.max(due.length, queued.length) === TASKS_PER_ROUND) return 0;
    const next = await earliestRunAt(db);
    // The wall clock may jump; the poll notices it long before a time far ahead.
    return next === null ? Infinity : Math.max(0, next - clock.now());
  }

  /** After the wall clock was set back, nothing waits for the times that it had shown before (reliability CRN-4). */
  async function followClock(now: number): Promise<void> {
    if (latestNow === null) await db.write([settleByNow(now)]);
    const before: number = latestNow ?? await latestEventAt(db);
    if (now < before - STEP_BACK_MS) {
      log.warning("The clock was set back by {seconds} s; schedules follow it", {
        seconds: (before - now) / 1000,
      });
      await db.write([...dueAfterStepBack(now), settleByNow(now)]);
      await moveForward(now);
    }
    // Only now: a pass that failed is made once more.
    latestNow = now;
  }

  /** Computes the next times again: they would be too late. */
  async function moveForward(now: number): Promise<void> {
    for (let after: DueTask | null = null;;) {
      const tasks: DueTask[] = await listSchedulesAfter(
        db,
        after?.next_run_at ?? now,
        after?.id ?? "",
        TASKS_PER_ROUND,
      );
      await allEnded(tasks.map((task) => moveOne(task, now)));
      after = tasks.at(-1) ?? null;
      if (after === null || tasks.length < TASKS_PER_ROUND) return;
    }
  }

  async function moveOne(task: DueTask, now: number): Promise<void> {
    let next: number | null;
    try {
      next = nextOf(task, now);
    } catch (error) {
      // For example a time zone that the system does not know any more. It is said again when it is due.
      log.error("Cannot work out when task {id} is due: {error}", { id: task.id, error });
      return;
    }
    if (next === null || next >= task.next_run_at) return;
    await db.write(skipOccurrence({ id: task.id, expected: task.next_run_at, next, now }));
  }

  // A cron whose next date is out of reach is looked at again; with an end there is none behind it.
  function nextOf(task: DueTask, now: number): number | null {
    return nextRunAt(task, defaultZone, now) ?? (task.until === null ? now + LATER_MS : null);
  }

  async function fire(task: DueTask, now: number): Promise<void> {
    let statements: Statement[];
    try {
      statements = task.type === "countdown" ? countdown(task, now) : occurrence(task, now);
    } catch (error) {
      // For example a time zone that the system does not know any more. The other tasks must not wait for this one.
      log.error("Cannot work out when task {id} is due, looking again in a minute: {error}", {
        id: task.id,
        error,
      });
      const next = now + 60_000;
      statements = skipOccurrence({ id: task.id, expected: task.next_run_at, next, now });
    }
    try {
      faultPoint("cron.tick");
      const { won } = await db.write(statements);
      // Not waited for: the end of the run rings for what waits behind it, and a run that was lost is marked in its row.
      if (won && replaces(task)) end(task.execution_id ?? "");
    } catch (error) {
      // This minute has fired already, before the clock was set back: on to the next.
      if (!isDuplicate(error)) throw error;
      await db.write(
        skipOccurrence({
          id: task.id,
          expected: task.next_run_at,
          next: nextOf(task, now) ?? now + LATER_MS,
          now,
        }),
      );
    }
  }

  // One read that fails must not end the service: the run ends by itself then, and its place is taken later.
  function end(executionId: string): void {
    interruptRun(executionId).catch((error) =>
      log.error("Cannot end the run {id} for the next one: {error}", { id: executionId, error })
    );
  }

  // The time that waited for the end of the turn before; what is due now waits behind it.
  async function fireWaiting(task: DueTask & { queued_at: number }, now: number): Promise<void> {
    const { id, queued_at: at } = task;
    const due: JournalEntry = { kind: "task.due", ...keysOf(task), data: { at } };
    try {
      faultPoint("cron.tick");
      await db.write([...moved(fireQueued(id, at, now), now, due), insertOccurrence(id, at, "time", now)]);
    } catch (error) {
      // This minute has fired already, before the clock was set back.
      if (!isDuplicate(error)) throw error;
      await db.write([dropQueued(id, at)]);
    }
  }

  function occurrence(task: DueTask, now: number): Statement[] {
    const keys = keysOf(task);
    const zone = task.time_zone || defaultZone;
    const expected = task.next_run_at;
    const last = Math.min(now, task.until ?? now);
    const found = missedOccurrences(task.cron, zone, expected, last);
    const move = { id: task.id, expected, next: nextOf(task, now), now };
    // The zone is another one by now, and its cron has no such time in it.
    if (found === null && task.status === "scheduled" && move.next !== null) return skipOccurrence(move);
    const missed = found ?? { latest: expected, count: 1 };
    if (task.status !== "scheduled") {
      const data = { at: missed.latest, count: missed.count };
      if (waitsForIt(task)) return queue({ ...move, dueAt: missed.latest }, task, data);
      // The run before has not ended: this time is skipped, and the journal says so (reliability CRN-7).
      return moved(skipOccurrence(move), now, { kind: "task.skipped", ...keys, data });
    }
    const tooOld = now - missed.latest > catchUpWindowMs;
    const lost = tooOld ? missed.count : missed.count - 1;
    const data = { count: lost, until: missed.latest };
    const note = lost > 0 ? [record(now, { kind: "task.missed", ...keys, data })] : [];
    if (tooOld && move.next === null) {
      return [...moved(closeSchedule(move), now, { kind: "task.completed", ...keys }), ...note];
    }
    if (tooOld) return [...skipOccurrence(move), ...note];
    const due: JournalEntry = { kind: "task.due", ...keys, data: { at: missed.latest } };
    return [
      ...note,
      ...moved(fireSchedule({ ...move, dueAt: missed.latest }), now, due),
      insertOccurrence(task.id, missed.latest, "time", now),
    ];
  }
}

/** Whether a time that falls due now waits for the end of the present turn. One that has not begun yet is the one that waits. */
function waitsForIt({ overlap, status, gating, queued_at }: DueTask): boolean {
  if (status !== "running" && gating === 0) return false;
  return overlap === "replace" || overlap === "queue" && queued_at === null;
}

// The run before ends for it; a gate notices by itself.
function replaces(task: DueTask): boolean {
  return task.overlap === "replace" && task.status === "running";
}

function queue(
  move: Parameters<typeof queueOccurrence>[0],
  task: DueTask,
  data: { at: number; count: number },
): Statement[] {
  const keys = keysOf(task);
  const waits = moved(queueOccurrence(move), move.now, { kind: "task.queued", ...keys, data });
  const execution_id = task.execution_id ?? "";
  if (!replaces(task)) return waits;
  const ends = record(move.now, { kind: "execution.cancelling", ...keys, execution_id, data });
  return [...waits, markReplaced(execution_id), ends];
}

function countdown(task: DueTask, now: number): Statement[] {
  const due: JournalEntry = { kind: "task.due", ...keysOf(task), data: { at: task.next_run_at } };
  return [
    ...moved(fireCountdown(task.id, task.next_run_at, now), now, due),
    insertOccurrence(task.id, task.next_run_at, "time", now),
  ];
}

function keysOf(task: DueTask) {
  const { session_key, worker_id, message_id } = task;
  return { session_key, worker_id, message_id, task_id: task.id };
}
