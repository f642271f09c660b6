// scheduled -> pending, when a countdown's or a schedule's time has come
import type { Clock } from "../clock.ts";
import { missedOccurrences, nextOccurrence } from "../domain/cron.ts";
import type { Database, Statement } from "../store/database.ts";
import { record } from "../store/journal.ts";
import { type DueTask, listDueTasks, nextRunAt } from "../store/task_queue.ts";
import { fireCountdown, fireSchedule, recordOccurrence, skipOccurrence } from "../store/task_move.ts";
import { BELL, type Bells } from "../wake.ts";
import { Stage } from "./loop.ts";

const TASKS_PER_ROUND = 500;

/** What the scheduler works with. */
export interface SchedulerOptions {
  db: Database;
  clock: Clock;
  bells: Bells;
  standardZone: string;
  /** A missed time is made up for when it is not older than this (contract 3, Task). */
  catchUpWindowMs: number;
}

/** Fires what is due: never early, at most once per task and minute. Its work grows with what is due, not with what exists. */
export function createScheduler(options: SchedulerOptions): Stage {
  const { db, clock, bells, standardZone, catchUpWindowMs } = options;
  return new Stage({ name: "scheduler", bell: BELL.scheduler, clock, bells, step });

  async function step(): Promise<number> {
    const now = clock.now();
    const due = await listDueTasks(db, now, TASKS_PER_ROUND);
    if (due.length > 0) {
      await Promise.all(due.map((task) => db.write(fire(task, now))));
      bells.ring(BELL.dispatcher);
      if (due.length === TASKS_PER_ROUND) return 0;
    }
    const next = await nextRunAt(db);
    // The wall clock may jump, so the poll looks again long before a far time.
    return next === null ? Infinity : Math.max(0, next - clock.now());
  }

  function fire(task: DueTask, now: number): Statement[] {
    const keys = {
      session_key: task.session_key,
      worker_id: task.worker_id,
      task_id: task.id,
      message_id: task.message_id,
    };
    const expected = task.next_run_at;
    if (task.type === "countdown") {
      return [
        ...fireCountdown(task.id, expected, now),
        record(now, { kind: "task.due", ...keys, data: { at: expected } }),
      ];
    }
    const zone = task.time_zone || standardZone;
    const missed = missedOccurrences(task.cron, zone, expected, now) ?? { latest: expected, count: 1 };
    const next = nextOccurrence(task.cron, zone, now) ?? now + catchUpWindowMs;
    const move = { id: task.id, expected, next, now };
    if (task.status !== "scheduled") {
      // The run before is still open: the time is skipped, and the journal says so (promises CRN-7).
      return [
        ...skipOccurrence(move),
        record(now, { kind: "task.skipped", ...keys, data: { at: missed.latest, count: missed.count } }),
      ];
    }
    const tooOld = now - missed.latest > catchUpWindowMs;
    const lost = tooOld ? missed.count : missed.count - 1;
    const note = record(now, { kind: "task.missed", ...keys, data: { count: lost, until: missed.latest } });
    if (tooOld) return [...skipOccurrence(move), note];
    return [
      ...fireSchedule({ ...move, dueAt: missed.latest }),
      recordOccurrence(task.id, missed.latest, now),
      ...(lost > 0 ? [note] : []),
      record(now, { kind: "task.due", ...keys, data: { at: missed.latest } }),
    ];
  }
}
