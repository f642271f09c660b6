import { createLogger } from "../../base/log.ts";
import { isBusy, isDamage, isFencedOff, isRefused, TAKEN_OVER, translateError } from "./database_error.ts";
import type { Driver, Row, Statement } from "./driver.ts";

const log = createLogger("database");

/** How long a write waits for a foreign lock before it gives up with `unavailable`. */
export const BUSY_WAIT_MAX_MS = 5_000;
// Random, so that two waiting processes do not collide again.
const BUSY_PAUSE_MIN_MS = 20;
const BUSY_PAUSE_MAX_MS = 100;

// Only the garbage collector frees native statements, and it never runs while a loop of resolved promises keeps the
// event loop busy (facts, libSQL 8).
const STATEMENTS_PER_YIELD = 500;

/** Wraps a driver: waits for locks of other processes, translates errors, and detects damage. */
export class Connection {
  readonly remote: boolean;
  /** The reason why writes are refused, or null. */
  broken: string | null = null;
  onBroken: (reason: string, cause?: unknown) => void = () => {};
  /** Number of times that another process held the lock. */
  busy = 0;
  readonly #driver: Driver;
  #sinceYield = 0;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.remote = driver.remote;
  }

  async query(statement: Statement): Promise<Row[]> {
    await this.#yieldAfterMany(1);
    return await this.#run(() => this.#driver.query(statement));
  }

  async first(statement: Statement): Promise<Row | null> {
    await this.#yieldAfterMany(1);
    return await this.#run(() => this.#driver.first(statement));
  }

  /** Commits all statements or none. Waits for a foreign lock until BUSY_WAIT_MAX_MS after `since`, monotonic ms. */
  async batch(statements: Statement[], since: number): Promise<Row[][]> {
    await this.#yieldAfterMany(statements.length);
    return await this.#run(() => this.#driver.batch(statements), since);
  }

  /** Copies the database without retries. */
  async copyTo(path: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#driver.copyTo(path, signal);
    } catch (error) {
      throw translateError(error);
    }
  }

  /** Moves the content of the WAL file into the database file. Throws while another process reads or writes. */
  async checkpoint(): Promise<void> {
    const [row] = await this.#driver.query({ sql: "pragma wal_checkpoint(truncate)", args: [] });
    if (row?.busy !== 0) throw new Error("another program is reading or writing");
  }

  break(reason: string, cause?: unknown): void {
    if (this.broken !== null) return;
    this.broken = reason;
    this.onBroken(reason, cause);
  }

  close(): void {
    this.#driver.close();
  }

  /** Retries `work` while another process holds the lock, without blocking the event loop (facts, libSQL 13). */
  async #run<T>(work: () => Promise<T>, since = performance.now()): Promise<T> {
    while (true) {
      try {
        return await work();
      } catch (error) {
        if (isDamage(error)) this.break("it is damaged", error);
        if (isFencedOff(error)) this.break(TAKEN_OVER, error);
        if (!isBusy(error) && !isRefused(error)) throw translateError(error);
        if (!this.remote) {
          this.busy++;
          // After a BUSY, this connection cannot write again (facts, libSQL 13).
          await this.#driver.reconnect().catch(() => {});
        }
        if (performance.now() - since > BUSY_WAIT_MAX_MS || this.broken !== null) throw translateError(error);
        // A busy server executed nothing, and its other clients are expected (facts, libSQL server 3).
        if (!this.remote) log.warning("Database is locked by another process. Retrying");
        const pause = BUSY_PAUSE_MIN_MS + Math.random() * (BUSY_PAUSE_MAX_MS - BUSY_PAUSE_MIN_MS);
        await new Promise((resolve) => setTimeout(resolve, pause));
      }
    }
  }

  async #yieldAfterMany(statements: number): Promise<void> {
    this.#sinceYield += statements;
    if (this.#sinceYield < STATEMENTS_PER_YIELD) return;
    this.#sinceYield = 0;
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}
