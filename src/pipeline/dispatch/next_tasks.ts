// Reads the next task of each work directory for the dispatcher.
import { type Block, isPlaceHold } from "../../domain/work/block.ts";
import type { EngineChoice } from "../../engine/fallback.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { reportRunLimit } from "../../store/chat/run_limit.ts";
import { blockTasks } from "../../store/work/task_transitions.ts";
import {
  type BlockedPosition,
  FIRST_BLOCKED_POSITION,
  FIRST_LANE,
  type LanePosition,
  listNextBlockedTasks,
  listNextTasks,
  listOldestNextTasks,
  type WaitingTask,
  WORK_DIRS_PER_ROUND,
} from "../../store/work/task_queue.ts";
import type { Reservation } from "./admission.ts";
import type { RunnerSlot } from "./placement.ts";

export interface TaskStart {
  task: WaitingTask;
  lock: string;
  reservation: Reservation;
  choice: EngineChoice;
  /** The slot on a runner, or null for this machine. */
  slot: RunnerSlot | null;
}

interface NextTasksPage {
  tasks: WaitingTask[];
  /** Whether more work directories follow. The next read continues there. */
  more: boolean;
}

/**
 * Reads the next tasks of work directories in pages of limited size, blocked tasks included. Each page also has the oldest tasks of all
 * directories, so that none starves however many directories have tasks.
 */
export class NextTasks {
  readonly #db: Database;
  readonly #limit: number;
  /** Where the next page starts, or null when these directories are done until all have been read. */
  #freeAfter: LanePosition | null = FIRST_LANE;
  #blockedAfter: BlockedPosition | null = FIRST_BLOCKED_POSITION;

  constructor(db: Database, limit = WORK_DIRS_PER_ROUND) {
    this.#db = db;
    this.#limit = limit;
  }

  async read(now: number): Promise<NextTasksPage> {
    const db = this.#db;
    const limit = this.#limit;
    const isFirst = this.#freeAfter === FIRST_LANE && this.#blockedAfter === FIRST_BLOCKED_POSITION;
    const [free, blocked] = await Promise.all([
      this.#freeAfter === null ? NONE : listNextTasks(db, now, { after: this.#freeAfter, limit }),
      this.#blockedAfter === null ? NONE : listNextBlockedTasks(db, { after: this.#blockedAfter, limit }),
    ]);
    const more = free.next !== null || blocked.next !== null;
    this.#freeAfter = more ? free.next : FIRST_LANE;
    this.#blockedAfter = more ? blocked.next : FIRST_BLOCKED_POSITION;
    const whole = isFirst && !more;
    const oldest = whole ? [] : await listOldestNextTasks(db, now, limit);
    if (blocked.heads.length === 0 && oldest.length === 0) return { tasks: free.heads, more };
    const tasks = new Map([...oldest, ...free.heads, ...blocked.heads].map((task) => [task.id, task]));
    const sorted = [...tasks.values()].sort((a, b) => a.due_at - b.due_at || (a.id < b.id ? -1 : 1));
    return { tasks: sorted, more };
  }
}

const NONE = { heads: [], next: null };

/** Builds the statements that store why the tasks of this worker are blocked. Returns none when the reason is stored already. */
export function buildBlockNote(task: WaitingTask, block: Block, now: number): Statement[] {
  // The reason of a block by a runner or a launcher may change while the key stays. Other reasons contain figures that change all the time.
  const isNewReason = isPlaceHold(block.held) && task.reason !== block.reason;
  if (task.held === block.held && task.held_until === block.until && !isNewReason) return [];
  const { worker_id, session_key, message_id, id: task_id } = task;
  const keys = { worker_id, session_key, message_id, task_id };
  return [
    ...(block.held.startsWith("run_limit:") ? reportRunLimit(keys, block, now) : []),
    blockTasks(task, block, now),
  ];
}
