import { setImmediate } from "node:timers";
import { yieldToLoop } from "../../base/yield_to_loop.ts";
import { BUSY_WAIT_MAX_MS, type Connection } from "./connection.ts";
import { buildDamageError, isLockedOut, isLostGuard, isOutOfReach } from "./database_error.ts";
import type { Row, Statement } from "./driver.ts";

/** Result of a write. `won` is false when a guard was lost and nothing was written. */
export interface WriteResult {
  won: boolean;
  /** Returned rows by statement, [] when lost. */
  rows: Row[][];
}

// Writes that queued up during a commit share one transaction and one disk sync.
const GROUP_MAX_STATEMENTS = 400;
const GROUP_MAX_CHARACTERS = 512 * 1024;
// A commit this soon after the previous one indicates load.
const BUSY_WITHIN_MS = 2;

interface Job {
  statements: Statement[];
  /** Time of the call, monotonic ms. */
  at: number;
  resolve: (written: WriteResult) => void;
  reject: (error: unknown) => void;
}

/** Queues all writes of this process, first in, first out, so that they never wait for each other's lock. */
export class Writer {
  /** Called after each commit with the wakeups of its statements. */
  onCommit: (wakeups: string[]) => void = () => {};
  /** Precedes every batch on a server and fails it when the database has another owner. */
  fence: Statement | null = null;
  readonly #connection: Connection;
  readonly #queue: Job[] = [];
  #committedAt = -Infinity;
  #writing = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Commits all statements or none, in the order of the calls. A `first` write goes before all queued writes. */
  write(statements: Statement[], { first = false } = {}): Promise<WriteResult> {
    const { broken } = this.#connection;
    if (broken !== null) return Promise.reject(buildDamageError(broken));
    return new Promise((resolve, reject) => {
      const job = { statements, at: performance.now(), resolve, reject };
      if (first) this.#queue.unshift(job);
      else this.#queue.push(job);
      if (this.#writing) return;
      this.#writing = true;
      // Writes of one turn of the event loop share a commit. Under load it pays to wait for a whole turn: a disk sync costs
      // as much as twenty statements.
      const busy = performance.now() - this.#committedAt < BUSY_WITHIN_MS;
      if (busy) setImmediate(() => void this.#drain());
      else queueMicrotask(() => void this.#drain());
    });
  }

  get waiting(): { writes: number; oldestMs: number } {
    const [first] = this.#queue;
    return { writes: this.#queue.length, oldestMs: first === undefined ? 0 : performance.now() - first.at };
  }

  /** Rejects all queued writes. */
  refuse(error: unknown): void {
    for (const job of this.#queue.splice(0)) job.reject(error);
  }

  /** Resolves when the queue is empty and no commit is running. */
  async waitUntilIdle(): Promise<void> {
    while (this.#writing) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  async #drain(): Promise<void> {
    const started = performance.now();
    while (this.#queue.length > 0) {
      if (this.#committedAt > started) await yieldToLoop();
      const group = this.#takeGroup();
      try {
        const results = await this.#commit(group.flatMap((job) => job.statements), group[0]?.at ?? 0);
        let at = 0;
        for (const job of group) {
          job.resolve({ won: true, rows: results.slice(at, at += job.statements.length) });
        }
      } catch (error) {
        if (isLockedOut(error)) this.#rejectOverdue(group, error);
        else if (group.length === 1 || isOutOfReach(error)) {
          for (const job of group) settleFailed(job, error);
        } else await this.#commitSeparately(group);
      }
    }
    this.#writing = false;
  }

  #takeGroup(): Job[] {
    const group: Job[] = [];
    let statements = 0;
    let characters = 0;
    while (this.#queue[0] !== undefined) {
      statements += this.#queue[0].statements.length;
      characters += countCharacters(this.#queue[0].statements);
      if (group.length > 0 && (statements > GROUP_MAX_STATEMENTS || characters > GROUP_MAX_CHARACTERS)) break;
      group.push(this.#queue.shift() as Job);
    }
    return group;
  }

  // A job lost a guard or broke a constraint, which rolled back the shared transaction. So each job gets its own.
  async #commitSeparately(group: Job[]): Promise<void> {
    for (const job of group) {
      try {
        job.resolve({ won: true, rows: await this.#commit(job.statements, job.at) });
      } catch (error) {
        settleFailed(job, error);
      }
    }
  }

  // Another process keeps its lock. Old jobs fail, the others keep their positions.
  #rejectOverdue(group: Job[], error: unknown): void {
    const oldest = performance.now() - BUSY_WAIT_MAX_MS;
    this.#queue.unshift(...group.filter((job) => job.at > oldest));
    for (const job of group) if (job.at <= oldest) job.reject(error);
  }

  async #commit(statements: Statement[], since: number): Promise<Row[][]> {
    const { broken } = this.#connection;
    if (broken !== null) throw buildDamageError(broken);
    const fence = this.fence === null ? [] : [this.fence];
    const all = await this.#connection.batch([...fence, ...statements], since);
    this.#committedAt = performance.now();
    this.onCommit(statements.flatMap(({ wakeup = [] }) => wakeup));
    return all.slice(fence.length);
  }
}

function countCharacters(statements: readonly Statement[]): number {
  let sum = 0;
  for (const { args } of statements) {
    for (const arg of args) if (typeof arg === "string") sum += arg.length;
  }
  return sum;
}

function settleFailed(job: Job | undefined, error: unknown): void {
  if (isLostGuard(error)) job?.resolve({ won: false, rows: [] });
  else job?.reject(error);
}
