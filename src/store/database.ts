import { setImmediate } from "node:timers";
import { logger } from "../base/log.ts";
import {
  damaged,
  isBusy,
  isDamage,
  isFencedOff,
  isLockedOut,
  isLostGuard,
  mapped,
  openError,
  TAKEN_OVER,
} from "./database_error.ts";
import type { Driver, Row, Statement, Value } from "./driver.ts";

export { isDuplicate, isMissingReference } from "./database_error.ts";
export type { Row, Statement, Value } from "./driver.ts";

const log = logger("database");

/** Outcome of a write: `won` is false when a guard found that somebody else was first, and then nothing was written. */
export interface Written {
  won: boolean;
  /** Rows that each statement returned, in order of the statements; [] when lost. */
  rows: Row[][];
}

/** How long a write waits for a foreign lock before it gives up with `unavailable`. */
export const BUSY_WAIT_MAX_MS = 5_000;

// Native statements are freed by the garbage collector only, which never runs
// while a loop of resolved promises keeps the event loop busy (facts, libSQL 8).
const STATEMENTS_PER_YIELD = 500;

// Writes that queued up while one was going on share a transaction, and so a disk sync.
const GROUP_MAX_STATEMENTS = 400;
// A commit so soon after the one before is a sign of load.
const BUSY_WITHIN_MS = 2;

// What unlessChanged() keeps: pages of lists, so a few at most.
const RESULTS_MAX = 64;
const RESULT_MAX_AGE_MS = 1_000;
const RESULT_MAX_CHARACTERS = 256 * 1024;

/** A lost guard rolls its batch back (house, sentence 3). Stands behind each guarded statement. */
const GUARD: Statement = { sql: "insert into guard (held) select 0 where changes() <> 1", args: [] };

/** A statement that must change exactly one row, or the whole batch is taken back. `bell` is rung when it is committed. */
export function guarded(sql: string, args: Value[], bell?: string): Statement[] {
  return [{ sql, args, bell }, GUARD];
}

interface Job {
  statements: Statement[];
  /** When it was asked for, monotonic ms. */
  at: number;
  resolve: (written: Written) => void;
  reject: (error: unknown) => void;
}

/**
 * The one door to libSQL. Reads run at once; writes are one-shot batches through one FIFO queue, so
 * nothing of ours ever waits for our own lock. Local file or remote server, the same statements.
 */
export class Database {
  readonly remote: boolean;
  /** Called after each commit with the bells of its statements. */
  onCommit: (bells: string[]) => void = () => {};
  /** Called once when nothing is written any more: the database is damaged, or was taken away. */
  onBroken: (reason: string, cause?: unknown) => void = () => {};
  /** Why nothing is written any more, or null while all is well. */
  broken: string | null = null;
  /** Stands before every batch when others may reach the database: with the wrong owner in it nothing is written. */
  fence: Statement | null = null;
  /** How often a lock of another process was met. Our own never meet each other (promises DBF-5). */
  busy = 0;
  readonly #driver: Driver;
  readonly #queue: Job[] = [];
  readonly #results = new Map<string, { result: Promise<unknown>; commits: number; until: number }>();
  #commits = 0;
  #committedAt = -Infinity;
  #writing = false;
  #sinceYield = 0;
  #closed = false;

  private constructor(driver: Driver) {
    this.#driver = driver;
    this.remote = driver.remote;
  }

  /** Opens `url` (`file:`, `:memory:`, `libsql:`, `http(s):`). Throws ServiceError `unavailable` with advice. */
  static async open(url: string, authToken = ""): Promise<Database> {
    try {
      if (url === ":memory:" || url.startsWith("file:")) {
        const { LocalDriver } = await import("./local_driver.ts");
        return new Database(new LocalDriver(url.replace(/^file:/, "")));
      }
      const { RemoteDriver } = await import("./remote_driver.ts");
      return new Database(await RemoteDriver.open(url, authToken));
    } catch (error) {
      throw openError(url, error);
    }
  }

  /** Rows of one query. */
  async read<T extends Row>(sql: string, args: Value[] = []): Promise<T[]> {
    await this.#yieldSometimes(1);
    return await this.#run(() => this.#driver.query({ sql, args })) as T[];
  }

  /** The first row of a query, or null. */
  async first<T extends Row>(sql: string, args: Value[] = []): Promise<T | null> {
    await this.#yieldSometimes(1);
    return await this.#run(() => this.#driver.first({ sql, args })) as T | null;
  }

  /**
   * The result of `work`, or the one that it had before when nothing was committed since. For what many clients ask
   * again and again, such as the first page of a list, or at once. A second old at most: somebody else may write, too.
   */
  async unlessChanged<T>(key: string, work: () => Promise<T>, sizeOf: (result: T) => number): Promise<T> {
    const now = performance.now();
    const known = this.#results.get(key);
    if (known !== undefined && known.commits === this.#commits && known.until > now) {
      return await (known.result as Promise<T>);
    }
    // Whoever asks while it is being worked out gets the same.
    const result = work();
    const made = { result, commits: this.#commits, until: now + RESULT_MAX_AGE_MS };
    if (this.#results.size >= RESULTS_MAX) this.#results.clear();
    this.#results.set(key, made);
    let keep = false;
    try {
      keep = sizeOf(await result) <= RESULT_MAX_CHARACTERS;
      return await result;
    } finally {
      if (!keep && this.#results.get(key) === made) this.#results.delete(key);
    }
  }

  /** Commits the statements together or not at all. Order of calls is order of commits. */
  write(statements: Statement[]): Promise<Written> {
    if (this.broken !== null) return Promise.reject(damaged(this.broken));
    return new Promise((resolve, reject) => {
      this.#queue.push({ statements, at: performance.now(), resolve, reject });
      if (this.#writing) return;
      this.#writing = true;
      // Writes of the same turn travel together. Under load, when one commit follows another, it pays to let
      // a whole turn of the event loop bring more of them: a disk sync costs as much as twenty statements.
      const busy = performance.now() - this.#committedAt < BUSY_WITHIN_MS;
      if (busy) setImmediate(() => void this.#drain());
      else queueMicrotask(() => void this.#drain());
    });
  }

  /** As write(), but losing a guard is the `conflict` that the caller describes. */
  async writeOr(statements: Statement[], lost: () => Promise<Error> | Error): Promise<Row[][]> {
    const { won, rows } = await this.write(statements);
    if (!won) throw await lost();
    return rows;
  }

  /**
   * Writes a consistent copy of everything to a new file and makes sure that it is sound. A local file only. Blocks for
   * about 7 ms per MB (facts, libSQL 7). Throws `storage_full`, `unavailable`, and Error for a copy that is damaged.
   */
  async copyTo(path: string): Promise<void> {
    await this.#run(() => Promise.resolve(this.#driver.copyTo(path)));
    const faults = await inspect(path);
    if (faults.length > 0) throw new Error(`the copy is damaged: ${faults.join("; ")}`);
  }

  /** How many writes wait, and for how long the first of them has, in ms. */
  get waiting(): { writes: number; oldestMs: number } {
    const [first] = this.#queue;
    return { writes: this.#queue.length, oldestMs: first === undefined ? 0 : performance.now() - first.at };
  }

  /** Brings everything that was committed from the log beside the file into the file itself. A local file only. */
  async checkpoint(): Promise<void> {
    const [row] = await this.#driver.query({ sql: "pragma wal_checkpoint(truncate)", args: [] });
    if (row?.busy !== 0) throw new Error("another program is reading or writing");
  }

  /** From here on every write is refused; what waits is refused as well. */
  break(reason: string, cause?: unknown): void {
    if (this.broken !== null) return;
    this.broken = reason;
    for (const job of this.#queue.splice(0)) job.reject(damaged(reason, cause));
    this.onBroken(reason, cause);
  }

  /** Waits until every queued write is done, then closes. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    while (this.#writing) await new Promise((resolve) => setTimeout(resolve, 1));
    this.#driver.close();
  }

  async #drain(): Promise<void> {
    const started = performance.now();
    while (this.#queue.length > 0) {
      if (this.#committedAt > started) await new Promise<void>((resolve) => setImmediate(resolve));
      const group = this.#takeGroup();
      const statements = group.flatMap((job) => job.statements);
      await this.#yieldSometimes(statements.length);
      try {
        const results = await this.#commit(statements, group[0]?.at ?? 0);
        let at = 0;
        for (const job of group) {
          job.resolve({ won: true, rows: results.slice(at, at += job.statements.length) });
        }
      } catch (error) {
        if (isLockedOut(error)) this.#giveUp(group, error);
        else if (group.length > 1) await this.#oneByOne(group);
        else settleFailed(group[0], error);
      }
    }
    this.#writing = false;
  }

  #takeGroup(): Job[] {
    const group: Job[] = [];
    let statements = 0;
    while (this.#queue[0] !== undefined) {
      statements += this.#queue[0].statements.length;
      if (group.length > 0 && statements > GROUP_MAX_STATEMENTS) break;
      group.push(this.#queue.shift() as Job);
    }
    return group;
  }

  // One job of the group lost a guard or broke a constraint and the shared transaction
  // is undone: each job now stands for itself, in the same order.
  async #oneByOne(group: Job[]): Promise<void> {
    for (const job of group) {
      try {
        job.resolve({ won: true, rows: await this.#commit(job.statements, job.at) });
      } catch (error) {
        settleFailed(job, error);
      }
    }
  }

  // A foreign lock stays: whoever has waited for long enough is told so, the others wait on in their places.
  #giveUp(group: Job[], error: unknown): void {
    const oldest = performance.now() - BUSY_WAIT_MAX_MS;
    this.#queue.unshift(...group.filter((job) => job.at > oldest));
    for (const job of group) if (job.at <= oldest) job.reject(error);
  }

  async #commit(statements: Statement[], since: number): Promise<Row[][]> {
    if (this.broken !== null) throw damaged(this.broken);
    const fence = this.fence === null ? [] : [this.fence];
    const all = await this.#run(() => this.#driver.batch([...fence, ...statements]), since);
    const results = all.slice(fence.length);
    this.#commits++;
    this.#committedAt = performance.now();
    this.onCommit(statements.flatMap(({ bell }) => bell === undefined ? [] : [bell]));
    return results;
  }

  /** Runs native work; a foreign lock is waited for without blocking the event loop (facts, libSQL 13). */
  async #run<T>(work: () => Promise<T>, since = performance.now()): Promise<T> {
    while (true) {
      try {
        return await work();
      } catch (error) {
        if (isDamage(error)) this.break("it is damaged", error);
        if (isFencedOff(error)) this.break(TAKEN_OVER, error);
        if (!isBusy(error) || this.remote) throw mapped(error);
        this.busy++;
        // A BUSY poisons this connection for good: only a new one writes again.
        await this.#driver.reconnect().catch(() => {});
        if (performance.now() - since > BUSY_WAIT_MAX_MS || this.broken !== null) throw mapped(error);
        log.warning("Database is locked by another process, trying again");
        await new Promise((resolve) => setTimeout(resolve, 20 + Math.random() * 80));
      }
    }
  }

  async #yieldSometimes(statements: number): Promise<void> {
    this.#sinceYield += statements;
    if (this.#sinceYield < STATEMENTS_PER_YIELD) return;
    this.#sinceYield = 0;
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

/** Whatever is wrong with a database file that nobody has open; it is left as it was. */
export async function inspect(path: string): Promise<string[]> {
  const { inspectFile } = await import("./local_driver.ts");
  return inspectFile(path);
}

function settleFailed(job: Job | undefined, error: unknown): void {
  if (isLostGuard(error)) job?.resolve({ won: false, rows: [] });
  else job?.reject(error);
}
