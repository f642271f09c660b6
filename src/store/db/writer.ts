import { setImmediate } from "node:timers";
import { turn } from "../../base/yield_to_loop.ts";
import { BUSY_WAIT_MAX_MS, type Connection } from "./connection.ts";
import { damaged, isLockedOut, isLostGuard, isOutOfReach } from "./database_error.ts";
import type { Row, Statement } from "./driver.ts";

/** Result of a write: `won` is false when a guard was lost, and then nothing was written. */
export interface Written {
  won: boolean;
  /** Rows that each statement returned, in order of the statements; [] when lost. */
  rows: Row[][];
}

// Writes that queued up during a commit share one transaction, and so one disk sync.
const GROUP_MAX_STATEMENTS = 400;
const GROUP_MAX_CHARACTERS = 512 * 1024;
// A commit so soon after the one before is a sign of load.
const BUSY_WITHIN_MS = 2;

interface Job {
  statements: Statement[];
  /** When it was asked for, monotonic ms. */
  at: number;
  resolve: (written: Written) => void;
  reject: (error: unknown) => void;
}

/** The one queue of all writes of this process, first in, first out: no write ever waits for a lock of our own. */
export class Writer {
  /** Called after each commit with the bells of its statements. */
  onCommit: (wakeups: string[]) => void = () => {};
  /** Goes before every batch on a server: when the database has another owner, nothing is written. */
  fence: Statement | null = null;
  readonly #connection: Connection;
  readonly #queue: Job[] = [];
  #committedAt = -Infinity;
  #writing = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Commits the statements together or not at all. Order of calls is order of commits, but for what goes `first`. */
  write(statements: Statement[], { first = false } = {}): Promise<Written> {
    const { broken } = this.#connection;
    if (broken !== null) return Promise.reject(damaged(broken));
    return new Promise((resolve, reject) => {
      const job = { statements, at: performance.now(), resolve, reject };
      if (first) this.#queue.unshift(job);
      else this.#queue.push(job);
      if (this.#writing) return;
      this.#writing = true;
      // Writes of the same turn of the event loop are committed together. Under load, when one commit follows another, it
      // pays to wait for one whole turn: a disk sync costs as much as twenty statements.
      const busy = performance.now() - this.#committedAt < BUSY_WITHIN_MS;
      if (busy) setImmediate(() => void this.#drain());
      else queueMicrotask(() => void this.#drain());
    });
  }

  /** How many writes wait, and for how long the first of them has, in ms. */
  get waiting(): { writes: number; oldestMs: number } {
    const [first] = this.#queue;
    return { writes: this.#queue.length, oldestMs: first === undefined ? 0 : performance.now() - first.at };
  }

  /** Refuses everything that waits. */
  refuse(error: unknown): void {
    for (const job of this.#queue.splice(0)) job.reject(error);
  }

  /** Resolves when nothing waits and nothing is being written. */
  async settled(): Promise<void> {
    while (this.#writing) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  async #drain(): Promise<void> {
    const started = performance.now();
    while (this.#queue.length > 0) {
      if (this.#committedAt > started) await turn();
      const group = this.#takeGroup();
      try {
        const results = await this.#commit(group.flatMap((job) => job.statements), group[0]?.at ?? 0);
        let at = 0;
        for (const job of group) {
          job.resolve({ won: true, rows: results.slice(at, at += job.statements.length) });
        }
      } catch (error) {
        if (isLockedOut(error)) this.#giveUp(group, error);
        else if (group.length === 1 || isOutOfReach(error)) {
          for (const job of group) settleFailed(job, error);
        } else await this.#oneByOne(group);
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
      characters += charactersOf(this.#queue[0].statements);
      if (group.length > 0 && (statements > GROUP_MAX_STATEMENTS || characters > GROUP_MAX_CHARACTERS)) break;
      group.push(this.#queue.shift() as Job);
    }
    return group;
  }

  // One job of the group lost a guard or broke a constraint, and the shared transaction was rolled back. So each
  // job is committed by itself, in the same order.
  async #oneByOne(group: Job[]): Promise<void> {
    for (const job of group) {
      try {
        job.resolve({ won: true, rows: await this.#commit(job.statements, job.at) });
      } catch (error) {
        settleFailed(job, error);
      }
    }
  }

  // Another process keeps its lock: jobs that have waited for long enough fail, the others keep their places.
  #giveUp(group: Job[], error: unknown): void {
    const oldest = performance.now() - BUSY_WAIT_MAX_MS;
    this.#queue.unshift(...group.filter((job) => job.at > oldest));
    for (const job of group) if (job.at <= oldest) job.reject(error);
  }

  async #commit(statements: Statement[], since: number): Promise<Row[][]> {
    const { broken } = this.#connection;
    if (broken !== null) throw damaged(broken);
    const fence = this.fence === null ? [] : [this.fence];
    const all = await this.#connection.batch([...fence, ...statements], since);
    this.#committedAt = performance.now();
    this.onCommit(statements.flatMap(({ wakeup = [] }) => wakeup));
    return all.slice(fence.length);
  }
}

function charactersOf(statements: readonly Statement[]): number {
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
