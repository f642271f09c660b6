// What the dispatcher looks at: the first task of each lane, and what holds it
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

/** A task that may start, in its lane. */
export interface Chosen {
  task: WaitingTask;
  lane: string;
  reservation: Reservation;
  /** Where on a runner; null: here. */
  spot: Spot | null;
}

/** What one look has found. */
interface Looked {
  tasks: WaitingTask[];
  /** Whether there are lanes behind these: the next look goes on there. */
  more: boolean;
}

/**
 * Looks at the first tasks of lanes, the oldest first, whether something held them or not: what is over lets the oldest through. One look
 * has so many lanes, and those of the oldest tasks: however many lanes have tasks, it is short.
 */
export class Heads {
  readonly #db: Database;
  readonly #limit: number;
  /** Where the next look begins; null: nothing of these is left until all were looked at. */
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
