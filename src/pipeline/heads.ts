// What the dispatcher looks at: the first task of each lane, and what holds it
import type { Hold } from "../domain/hold.ts";
import type { Database, Statement } from "../store/database.ts";
import { tellRunLimit } from "../store/run_limit.ts";
import { holdTasks } from "../store/task_move.ts";
import { listHeldHeads, listLaneHeads, type WaitingTask } from "../store/task_queue.ts";
import type { Reservation } from "./admission.ts";
import type { Spot } from "./placement.ts";

/** A task that may start, in its lane. */
export interface Chosen {
  task: WaitingTask;
  lane: string;
  reservation: Reservation;
  /** Where on a runner; null: here. */
  spot: Spot | null;
}

/** The first tasks of lanes, the oldest first, whether something held them or not: what is over lets the oldest through. */
export async function listHeads(db: Database, now: number): Promise<WaitingTask[]> {
  const [free, held] = await Promise.all([listLaneHeads(db, now), listHeldHeads(db)]);
  if (held.length === 0) return free;
  return [...free, ...held].sort((a, b) => a.due_at - b.due_at || (a.id < b.id ? -1 : 1));
}

/** What has to be written so that the tasks of this lane say what holds them; nothing when they do. */
export function noteOf(task: WaitingTask, hold: Hold, now: number): Statement[] {
  // What is missing of a runner changes while it is the same runner; other reasons have figures that always change.
  const isNewReason = hold.held.startsWith("runner:") && task.reason !== hold.reason;
  if (task.held === hold.held && task.held_until === hold.until && !isNewReason) return [];
  const { worker_id, session_key, message_id, id: task_id } = task;
  const often = { worker_id, session_key, message_id, task_id };
  return [
    ...(hold.held.startsWith("run_limit:") ? tellRunLimit(often, hold, now) : []),
    holdTasks(task, hold, now),
  ];
}

/** The lane of a work directory: its real path, so that two names of one directory are one lane. */
export function laneOf(workDir: string): string {
  try {
    return Deno.realPathSync(workDir);
  } catch {
    return workDir;
  }
}
