import { logger } from "../../base/log.ts";
import { isBusy, isDamage, isFencedOff, isRefused, mapped, TAKEN_OVER } from "./database_error.ts";
import type { Driver, Row, Statement } from "./driver.ts";

const log = logger("database");

/** How long a write waits for a foreign lock before it gives up with `unavailable`. */
export const BUSY_WAIT_MAX_MS = 5_000;
// A random pause before the next try, so that two processes that wait do not collide again.
const BUSY_PAUSE_MIN_MS = 20;
const BUSY_PAUSE_MAX_MS = 100;

// Native statements are freed by the garbage collector only, which never runs
// while a loop of resolved promises keeps the event loop busy (facts, libSQL 8).
const STATEMENTS_PER_YIELD = 500;

/** The driver, with what every statement needs: it waits for locks of other processes, translates errors and notices damage. */
export class Connection {
  readonly remote: boolean;
  /** Why nothing is written any more, or null while all is well. */
  broken: string | null = null;
  /** Called once, when `broken` is set. */
  onBroken: (reason: string, cause?: unknown) => void = () => {};
  /** How often a lock of another process was met. */
  busy = 0;
  readonly #driver: Driver;
  #sinceYield = 0;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.remote = driver.remote;
  }

  async query(statement: Statement): Promise<Row[]> {
    await this.#yieldSometimes(1);
    return await this.#run(() => this.#driver.query(statement));
  }

  async first(statement: Statement): Promise<Row | null> {
    await this.#yieldSometimes(1);
    return await this.#run(() => this.#driver.first(statement));
  }

  /** Commits all or nothing. A foreign lock is waited for until BUSY_WAIT_MAX_MS after `since`, monotonic ms. */
  async batch(statements: Statement[], since: number): Promise<Row[][]> {
    await this.#yieldSometimes(statements.length);
    return await this.#run(() => this.#driver.batch(statements), since);
  }

  /** Once only: a copy that was begun is not begun again. */
  async copyTo(path: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#driver.copyTo(path, signal);
    } catch (error) {
      throw mapped(error);
    }
  }

  /** Moves the content of the WAL file into the database file. Throws when another process is reading or writing. */
  async checkpoint(): Promise<void> {
    const [row] = await this.#driver.query({ sql: "pragma wal_checkpoint(truncate)", args: [] });
    if (row?.busy !== 0) throw new Error("another program is reading or writing");
  }

  /** Refuses every write from here on. */
  break(reason: string, cause?: unknown): void {
    if (this.broken !== null) return;
    this.broken = reason;
    this.onBroken(reason, cause);
  }

  close(): void {
    this.#driver.close();
  }

  /** Runs native work; waits for a lock of another process without blocking the event loop (facts, libSQL 13). */
  async #run<T>(work: () => Promise<T>, since = performance.now()): Promise<T> {
    while (true) {
      try {
        return await work();
      } catch (error) {
        if (isDamage(error)) this.break("it is damaged", error);
        if (isFencedOff(error)) this.break(TAKEN_OVER, error);
        if (!isBusy(error) && !isRefused(error)) throw mapped(error);
        if (!this.remote) {
          this.busy++;
          // After one BUSY this connection cannot write any more; only a new one can.
          await this.#driver.reconnect().catch(() => {});
        }
        if (performance.now() - since > BUSY_WAIT_MAX_MS || this.broken !== null) throw mapped(error);
        // On a server others write, too, and nothing of this was executed (facts, libSQL server 3).
        if (!this.remote) log.warning("Database is locked by another process, trying again");
        const pause = BUSY_PAUSE_MIN_MS + Math.random() * (BUSY_PAUSE_MAX_MS - BUSY_PAUSE_MIN_MS);
        await new Promise((resolve) => setTimeout(resolve, pause));
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
