// Task: scheduled -> pending, when it is due or when its queued occurrence can start.
import { settleAll } from "../../base/settle_all.ts";
import { findMissedOccurrences } from "../../domain/work/cron.ts";
import { decideDueTime, type DueDecision } from "../../domain/work/due_time.ts";
import { findNextRunAt } from "../../domain/work/task_plan.ts";
import { isRecurring } from "../../domain/work/task_type.ts";
import type { JournalEntry } from "../../domain/system/journal.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { isDuplicate, type Statement } from "../../store/db/database.ts";
import { resetFutureDueTimes, resetFutureLedgerTimes } from "../../store/work/clock_back.ts";
import { findLatestEventAt, record, recordTransition } from "../../store/events/journal.ts";
import { insertOccurrence } from "../../store/work/occurrence.ts";
import { markReplaced } from "../../store/work/execution.ts";
import {
  clearQueuedTime,
  closeSchedule,
  fireCountdown,
  fireQueued,
  fireSchedule,
  queueOccurrence,
  skipOccurrence,
} from "../../store/work/schedule_transitions.ts";
import {
  type DueTask,
  findEarliestRunAt,
  listDueTasks,
  listQueuedTasks,
  listSchedulesAfter,
} from "../../store/work/task_queue.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("scheduler");

const TASKS_PER_ROUND = 500;
// Smaller corrections of the wall clock do not count as setting it back.
const STEP_BACK_MS = 30_000;
// A schedule without a next time is checked again after this time.
const LATER_MS = 24 * 60 * 60 * 1000;

interface SchedulerOptions extends StageServices {
  defaultZone: string;
  /** A missed time still fires when it is at most this old (contract 3, Task). */
  catchUpWindowMs: number;
  /** Ends a run that the next time replaces (contract 15). */
  interruptRun: (executionId: string) => Promise<void>;
}

/**
 * Creates the stage that fires due tasks: never early, and at most once per task and minute. The cost of a step depends on the number of
 * due tasks, not of stored tasks.
 */
export function createScheduler(options: SchedulerOptions): Stage {
  const { db, clock, defaultZone, catchUpWindowMs, interruptRun } = options;
  let latestNow: number | null = null;
  return new Stage(options, { name: "scheduler", wakeup: WAKEUP.scheduler, step });

  async function step(): Promise<number> {
    const now = clock.now();
    await followClock(now);
    const [queued, due] = await Promise.all([
      listQueuedTasks(db, TASKS_PER_ROUND),
      listDueTasks(db, now, TASKS_PER_ROUND),
    ]);
    if (queued.length + due.length > 0) {
      await settleAll([
        ...queued.map((task) => fireQueuedTask(task, now)),
        ...due.map((task) => fire(task, now)),
      ]);
    }
    if (Math.max(due.length, queued.length) === TASKS_PER_ROUND) return 0;
    const next = await findEarliestRunAt(db);
    // The poll notices a jump of the wall clock long before a distant time.
    return next === null ? Infinity : Math.max(0, next - clock.now());
  }

  /** Recomputes all waiting times after the wall clock was set back (reliability CRN-4). */
  async function followClock(now: number): Promise<void> {
    if (latestNow === null) await db.write([resetFutureLedgerTimes(now)]);
    const before: number = latestNow ?? await findLatestEventAt(db);
    if (now < before - STEP_BACK_MS) {
      log.warning("The clock was set back by {seconds} s; schedules follow it", {
        seconds: (before - now) / 1000,
      });
      await db.write([...resetFutureDueTimes(now), resetFutureLedgerTimes(now)]);
      await recomputeAll(now);
    }
    // Set last, so that a failed pass repeats.
    latestNow = now;
  }

  /** Recomputes the next times of schedules, which would fire too late. */
  async function recomputeAll(now: number): Promise<void> {
    for (let after: DueTask | null = null;;) {
      const tasks: DueTask[] = await listSchedulesAfter(
        db,
        after?.next_run_at ?? now,
        after?.id ?? "",
        TASKS_PER_ROUND,
      );
      await settleAll(tasks.map((task) => recompute(task, now)));
      after = tasks.at(-1) ?? null;
      if (after === null || tasks.length < TASKS_PER_ROUND) return;
    }
  }

  async function recompute(task: DueTask, now: number): Promise<void> {
    let next: number | null;
    try {
      next = findNext(task, now);
    } catch (error) {
      // Fails, for example, when the system no longer knows a time zone. `fire` reports that when the task is due.
      log.error("Cannot compute the next time of task {id}: {error}", { id: task.id, error });
      return;
    }
    if (next === null || next >= task.next_run_at) return;
    await db.write(skipOccurrence({ id: task.id, expected: task.next_run_at, next, now }));
  }

  // A cron whose next date is out of reach is checked again later. With `until`, there is no later date.
  function findNext(task: DueTask, now: number): number | null {
    return findNextRunAt(task, defaultZone, now) ?? (task.until === null ? now + LATER_MS : null);
  }

  async function fire(task: DueTask, now: number): Promise<void> {
    const expected = task.next_run_at;
    let statements: Statement[];
    let isReplaced = false;
    try {
      if (isRecurring(task.type)) {
        const next = findNext(task, now);
        const decision = decideDueTime(task, { found: findMissed(task, now), next, now, catchUpWindowMs });
        isReplaced = decision.kind === "replace";
        statements = buildOccurrence(task, decision, { id: task.id, expected, next, now });
      } else statements = buildCountdown(task, now);
    } catch (error) {
      // Fails when the system no longer knows a time zone, for example. The other tasks must not wait for this one.
      log.error("Cannot compute the next time of task {id}, retrying in a minute: {error}", {
        id: task.id,
        error,
      });
      statements = skipOccurrence({ id: task.id, expected, next: now + 60_000, now });
    }
    try {
      faultPoint("cron.tick");
      const { won } = await db.write(statements);
      // Not awaited: the end of the run wakes the scheduler, and the row marks a replaced run even when the service stops.
      if (won && isReplaced) endRun(task.execution_id ?? "");
    } catch (error) {
      // The minute fired before the clock was set back. Continue with the next one.
      if (!isDuplicate(error)) throw error;
      const next = findNext(task, now) ?? now + LATER_MS;
      await db.write(skipOccurrence({ id: task.id, expected, next, now }));
    }
  }

  function findMissed({ cron, time_zone, next_run_at, until }: DueTask, now: number) {
    return findMissedOccurrences(cron, time_zone || defaultZone, next_run_at, Math.min(now, until ?? now));
  }

  // A failed read must not end the service. The run then ends normally, and the next time starts later.
  function endRun(executionId: string): void {
    interruptRun(executionId).catch((error) =>
      log.error("Cannot end the run {id} for the next one: {error}", { id: executionId, error })
    );
  }

  // Starts the queued occurrence after the previous one. An occurrence that is due now queues after it.
  async function fireQueuedTask(task: DueTask & { queued_at: number }, now: number): Promise<void> {
    const { id, queued_at: at } = task;
    const due: JournalEntry = { kind: "task.due", ...pickKeys(task), data: { at } };
    try {
      faultPoint("cron.tick");
      await db.write([
        ...recordTransition(fireQueued(id, at, now), now, due),
        insertOccurrence(id, at, "time", now),
      ]);
    } catch (error) {
      // The task already fired for this minute before the clock was set back.
      if (!isDuplicate(error)) throw error;
      await db.write([clearQueuedTime(id, at)]);
    }
  }
}

function buildOccurrence(
  task: DueTask,
  { kind, at, count }: DueDecision,
  move: Parameters<typeof skipOccurrence>[0] & Parameters<typeof closeSchedule>[0],
): Statement[] {
  const { now } = move;
  const keys = pickKeys(task);
  const fired = { ...move, dueAt: at };
  const data = { at, count };
  const missed = count === 0
    ? []
    : [record(now, { kind: "task.missed", ...keys, data: { count, until: at } })];
  switch (kind) {
    case "move":
      return skipOccurrence(move);
    case "skip":
      // The journal records each skipped time (reliability CRN-7).
      return recordTransition(skipOccurrence(move), now, { kind: "task.skipped", ...keys, data });
    case "queue":
      return recordTransition(queueOccurrence(fired), now, { kind: "task.queued", ...keys, data });
    case "replace": {
      const execution_id = task.execution_id ?? "";
      return [
        ...recordTransition(queueOccurrence(fired), now, { kind: "task.queued", ...keys, data }),
        markReplaced(execution_id),
        record(now, { kind: "execution.cancelling", ...keys, execution_id, data }),
      ];
    }
    case "complete":
      return [...recordTransition(closeSchedule(move), now, { kind: "task.completed", ...keys }), ...missed];
    case "miss":
      return [...skipOccurrence(move), ...missed];
    case "fire":
      return [
        ...missed,
        ...recordTransition(fireSchedule(fired), now, { kind: "task.due", ...keys, data: { at } }),
        insertOccurrence(task.id, at, "time", now),
      ];
  }
}

function buildCountdown(task: DueTask, now: number): Statement[] {
  const due: JournalEntry = { kind: "task.due", ...pickKeys(task), data: { at: task.next_run_at } };
  return [
    ...recordTransition(fireCountdown(task.id, task.next_run_at, now), now, due),
    insertOccurrence(task.id, task.next_run_at, "time", now),
  ];
}

function pickKeys(task: DueTask) {
  const { session_key, worker_id, message_id } = task;
  return { session_key, worker_id, message_id, task_id: task.id };
}
