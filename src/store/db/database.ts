import { ResultCache } from "./cache.ts";
import { Connection } from "./connection.ts";
import { damaged, openError } from "./database_error.ts";
import type { Driver, Row, Statement, Value } from "./driver.ts";
import { Writer, type Written } from "./writer.ts";

export { isDuplicate, isMissingReference, isOutOfReach, TAKEN_OVER } from "./database_error.ts";
export type { Row, Statement, Value } from "./driver.ts";
export type { Written } from "./writer.ts";

/** Follows each guarded statement: when that changed no row, the whole batch is rolled back (architecture, sentence 3). */
const GUARD: Statement = { sql: "insert into guard (held) select 0 where changes() <> 1", args: [] };

/** A statement that must change exactly one row, or the whole batch is rolled back. `bell` is rung after the commit. */
export function guarded(sql: string, args: Value[], wakeup?: string): Statement[] {
  return [{ sql, args, wakeup }, GUARD];
}

/** As guarded(), for a statement that must change `count` rows. */
export function guardedRows(count: number, statement: Statement): Statement[] {
  return [statement, { sql: "insert into guard (held) select 0 where changes() <> ?", args: [count] }];
}

/**
 * The only way to libSQL. Reads run at once; writes are batches through one queue. The statements are the same on a
 * local file and on a remote server.
 */
export class Database {
  readonly remote: boolean;
  /** Called after each commit with the bells of its statements. */
  onCommit: (wakeups: string[]) => void = () => {};
  /** Called once when writes stop for good: the database is damaged, or another server has taken it over. */
  onBroken: (reason: string, cause?: unknown) => void = () => {};
  readonly #connection: Connection;
  readonly #writer: Writer;
  readonly #results = new ResultCache();
  #closed = false;

  private constructor(driver: Driver) {
    this.#connection = new Connection(driver);
    this.#writer = new Writer(this.#connection);
    this.remote = driver.remote;
    this.#connection.onBroken = (reason, cause) => {
      this.#writer.refuse(damaged(reason, cause));
      this.onBroken(reason, cause);
    };
    this.#writer.onCommit = (wakeups) => {
      this.#results.outdate();
      this.onCommit(wakeups);
    };
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
  read<T extends Row>(sql: string, args: Value[] = []): Promise<T[]> {
    return this.#connection.query({ sql, args }) as Promise<T[]>;
  }

  /** The first row of a query, or null. */
  first<T extends Row>(sql: string, args: Value[] = []): Promise<T | null> {
    return this.#connection.first({ sql, args }) as Promise<T | null>;
  }

  /**
   * The result of `work`, or the earlier one when nothing was committed since. For what many clients ask again and
   * again, such as the first page of a list. One second old at most: another process may write, too.
   */
  unlessChanged<T>(key: string, work: () => Promise<T>, sizeOf: (result: T) => number): Promise<T> {
    return this.#results.get(key, work, sizeOf);
  }

  /** Commits the statements together or not at all. Order of calls is order of commits, but for what goes `first`, before all that waits. */
  write(statements: Statement[], order: { first?: boolean } = {}): Promise<Written> {
    return this.#writer.write(statements, order);
  }

  /** As write(), but a lost guard throws the error that `lost` makes. */
  async writeOr(statements: Statement[], lost: () => Promise<Error> | Error): Promise<Row[][]> {
    const { won, rows } = await this.write(statements);
    if (!won) throw await lost();
    return rows;
  }

  /**
   * Writes a consistent copy of everything, as it is now, to a new file; a local file only. Others go on meanwhile. Nothing has looked
   * yet whether the copy is sound. Throws `storage_full`, `unavailable`, and what aborts `signal`.
   */
  copyTo(path: string, signal: AbortSignal): Promise<void> {
    return this.#connection.copyTo(path, signal);
  }

  /** How many writes wait, and for how long the first of them has, in ms. */
  get waiting(): { writes: number; oldestMs: number } {
    return this.#writer.waiting;
  }

  /** How often a lock of another process was in the way. Our own writes never wait for each other's lock (reliability DBF-5). */
  get busy(): number {
    return this.#connection.busy;
  }

  /** Why nothing is written any more, or null while all is well. */
  get broken(): string | null {
    return this.#connection.broken;
  }

  /** Puts `fence` before every batch from here on: with another owner in the database nothing is written. */
  fenceOff(fence: Statement): void {
    this.#writer.fence = fence;
  }

  /** Moves everything that was committed from the WAL file into the database file. A local file only. */
  checkpoint(): Promise<void> {
    return this.#connection.checkpoint();
  }

  /** Refuses every write from here on, and those that wait. */
  break(reason: string, cause?: unknown): void {
    this.#connection.break(reason, cause);
  }

  /** Waits until every queued write is done, then closes. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writer.settled();
    this.#connection.close();
  }
}

/** What is wrong with a database file that nobody has open; [] when it is sound. The file is not changed. */
export async function inspect(path: string): Promise<string[]> {
  const { inspectFile } = await import("./local_driver.ts");
  return inspectFile(path);
}
