// Reads the next task of each work directory for the dispatcher.
import type { Hold } from "../../domain/work/block.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { tellRunLimit } from "../../store/chat/run_limit.ts";
import { holdTasks } from "../../store/work/task_transitions.ts";
import {
  FIRST_HELD,
  type HeldPlace,
  LANES_AT_ONCE,
  listHeldHeads,
  listLaneHeads,
  listOldestHeads,
  type WaitingTask,
} from "../../store/work/task_queue.ts";
import type { Reservation } from "./admission.ts";
import type { Spot } from "./placement.ts";

/** A task that the dispatcher starts. */
export interface Chosen {
  task: WaitingTask;
  lane: string;
  reservation: Reservation;
  /** The slot on a runner, or null for this machine. */
  spot: Spot | null;
}

interface Looked {
  tasks: WaitingTask[];
  /** Whether more work directories follow. The next read continues there. */
  more: boolean;
}

/**
 * Reads the next tasks of work directories in pages of limited size, blocked tasks included. Each page also has the oldest
 * tasks of all directories, so that none starves however many directories have tasks.
 */
export class Heads {
  readonly #db: Database;
  readonly #limit: number;
  /** Where the next page starts, or null when these directories are done until all have been read. */
  #lanes: string | null = "";
  #held: HeldPlace | null = FIRST_HELD;

  constructor(db: Database, limit = LANES_AT_ONCE) {
    this.#db = db;
    this.#limit = limit;
  }

  async look(now: number): Promise<Looked> {
    const db = this.#db;
    const limit = this.#limit;
    const isFirst = this.#lanes === "" && this.#held === FIRST_HELD;
    const [free, held] = await Promise.all([
      this.#lanes === null ? NONE : listLaneHeads(db, now, { after: this.#lanes, limit }),
      this.#held === null ? NONE : listHeldHeads(db, { after: this.#held, limit }),
    ]);
    const more = free.next !== null || held.next !== null;
    this.#lanes = more ? free.next : "";
    this.#held = more ? held.next : FIRST_HELD;
    const whole = isFirst && !more;
    const oldest = whole ? [] : await listOldestHeads(db, now, limit);
    if (held.heads.length === 0 && oldest.length === 0) return { tasks: free.heads, more };
    const tasks = new Map([...oldest, ...free.heads, ...held.heads].map((task) => [task.id, task]));
    const sorted = [...tasks.values()].sort((a, b) => a.due_at - b.due_at || (a.id < b.id ? -1 : 1));
    return { tasks: sorted, more };
  }
}

const NONE = { heads: [], next: null };

/**
 * Builds the statements that store why the tasks of this worker are blocked. Returns none when the reason is stored already.
 */
export function noteOf(task: WaitingTask, hold: Hold, now: number): Statement[] {
  // The reason of a runner block may change while the key stays. Other reasons contain figures that change all the time.
  const isNewReason = hold.held.startsWith("runner:") && task.reason !== hold.reason;
  if (task.held === hold.held && task.held_until === hold.until && !isNewReason) return [];
  const { worker_id, session_key, message_id, id: task_id } = task;
  const often = { worker_id, session_key, message_id, task_id };
  return [
    ...(hold.held.startsWith("run_limit:") ? tellRunLimit(often, hold, now) : []),
    holdTasks(task, hold, now),
  ];
}
