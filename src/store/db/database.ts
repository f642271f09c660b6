import { ResultCache } from "./cache.ts";
import { Connection } from "./connection.ts";
import { buildDamageError, buildOpenError } from "./database_error.ts";
import type { Driver, Row, SqlCondition, Statement, Value } from "./driver.ts";
import { Writer, type WriteResult } from "./writer.ts";

export { isDuplicate, isMissingReference, isOutOfReach, TAKEN_OVER } from "./database_error.ts";
export type { Row, Statement, Value } from "./driver.ts";
export type { WriteResult } from "./writer.ts";

/** Follows each guarded statement: when that statement changed no row, the batch is rolled back (architecture, sentence 3). */
const GUARD: Statement = { sql: "insert into guard (held) select 0 where changes() <> 1", args: [] };

/** Builds a statement that must change exactly one row, or the whole batch is rolled back. A commit notifies `wakeup`. */
export function guard(sql: string, args: Value[], wakeup?: string): Statement[] {
  return [{ sql, args, wakeup }, GUARD];
}

/** Builds the assignments of the defined values. */
export function buildSet(values: Record<string, Value | undefined>): { sql: string; args: Value[] } {
  const entries = Object.entries(values).filter((entry): entry is [string, Value] => entry[1] !== undefined);
  return { sql: entries.map(([name]) => `${name} = ?`).join(", "), args: entries.map(([, value]) => value) };
}

/** Builds an insert of one row, which `when` may prevent. */
export function insertRow(
  table: string,
  row: Record<string, Value>,
  when?: SqlCondition,
  wakeup?: string,
): Statement {
  const names = Object.keys(row);
  return {
    sql: `insert into ${table} (${names.join(", ")})
      select ${names.map(() => "?").join(", ")}${when === undefined ? "" : ` where ${when.sql}`}`,
    args: [...Object.values(row), ...(when?.args ?? [])],
    wakeup,
  };
}

/** Builds an insert of one row that must succeed, or the whole batch is rolled back. */
export function insertGuarded(...insert: Parameters<typeof insertRow>): Statement[] {
  return guardRows(1, insertRow(...insert));
}

/** Builds a statement that must change `count` rows, or the whole batch is rolled back. */
export function guardRows(count: number, statement: Statement): Statement[] {
  return [statement, { sql: "insert into guard (held) select 0 where changes() <> ?", args: [count] }];
}

/** The only way to libSQL, local or remote. Reads run immediately, writes are batches in one queue. */
export class Database {
  readonly remote: boolean;
  /** Called after each commit with the wakeups of its statements. */
  onCommit: (wakeups: string[]) => void = () => {};
  /** Called once when writes stop permanently: the database is damaged, or another server has taken it over. */
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
      this.#writer.refuse(buildDamageError(reason, cause));
      this.onBroken(reason, cause);
    };
    this.#writer.onCommit = (wakeups) => {
      this.#results.invalidate();
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
      throw buildOpenError(url, error);
    }
  }

  read<T extends object = Row>(sql: string, args: Value[] = []): Promise<T[]> {
    return this.#connection.query({ sql, args }) as Promise<T[]>;
  }

  first<T extends object = Row>(sql: string, args: Value[] = []): Promise<T | null> {
    return this.#connection.first({ sql, args }) as Promise<T | null>;
  }

  /** Returns the first column of the first row, or null. */
  async readValue<T>(sql: string, args: Value[] = []): Promise<T | null> {
    const row = await this.first(sql, args);
    return row === null ? null : Object.values(row)[0] as T | null;
  }

  /** Returns the first column of every row. */
  async readColumn<T>(sql: string, args: Value[] = []): Promise<T[]> {
    return (await this.read(sql, args)).map((row) => Object.values(row)[0] as T);
  }

  /**
   * Returns the result of `work`, or the cached result when nothing was committed since, for frequent reads such as the first
   * page of a list. A result is at most one second old because another process may write, too.
   */
  readCached<T>(key: string, work: () => Promise<T>, sizeOf: (result: T) => number): Promise<T> {
    return this.#results.get(key, work, sizeOf);
  }

  /** Commits all statements or none, in the order of the calls. A `first` write goes before all queued writes. */
  write(statements: Statement[], order: { first?: boolean } = {}): Promise<WriteResult> {
    return this.#writer.write(statements, order);
  }

  /** Commits like write(), but throws the error of `lost` when a guard is lost. */
  async writeOr(statements: Statement[], lost: () => Promise<Error> | Error): Promise<Row[][]> {
    const { won, rows } = await this.write(statements);
    if (!won) throw await lost();
    return rows;
  }

  /**
   * Writes a consistent copy of a local database to a new file without blocking other work. Does not check the copy.
   * Throws `storage_full`, `unavailable`, or the abort reason of `signal`.
   */
  copyTo(path: string, signal: AbortSignal): Promise<void> {
    return this.#connection.copyTo(path, signal);
  }

  /** Number of queued writes, and the age of the oldest in ms. */
  get waiting(): { writes: number; oldestMs: number } {
    return this.#writer.waiting;
  }

  /** Number of times that another process held the lock (reliability DBF-5). */
  get busy(): number {
    return this.#connection.busy;
  }

  /** The reason why writes are refused, or null. */
  get broken(): string | null {
    return this.#connection.broken;
  }

  /** Puts `fence` before every later batch, which then fails when the database has another owner. */
  fenceOff(fence: Statement): void {
    this.#writer.fence = fence;
  }

  /** Moves everything committed from the WAL file into the database file. Local files only. */
  checkpoint(): Promise<void> {
    return this.#connection.checkpoint();
  }

  /** Refuses queued and later writes. */
  break(reason: string, cause?: unknown): void {
    this.#connection.break(reason, cause);
  }

  /** Waits for all queued writes, then closes. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#writer.waitUntilIdle();
    this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Returns the faults of a closed database file, [] when it is sound. Does not change the file. */
export async function inspect(path: string): Promise<string[]> {
  const { inspectFile } = await import("./local_driver.ts");
  return inspectFile(path);
}
