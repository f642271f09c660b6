import Libsql from "libsql";
import { LRUCache } from "lru-cache";
import { copyPages } from "./copy.ts";
import { bindArgs, type Driver, type Row, type Statement } from "./driver.ts";

type Prepared = ReturnType<InstanceType<typeof Libsql>["prepare"]>;

interface CachedStatement {
  statement: Prepared;
  /** Column names, or null for a statement that returns nothing. */
  columns: string[] | null;
  /** Returns all rows as one JSON text. Prepared on first use. */
  list?: Prepared;
}

// A wait inside the library blocks the process (facts, libSQL 7), so it is short. Connection waits without blocking.
const BUSY_TIMEOUT_MS = 50;
// Every read has its own, smaller limit (contract 8.18). This one prevents a text that V8 cannot hold, some 500 MB.
const LIST_MAX_BYTES = 64 * 1024 * 1024;
const WAL_PAGES = 2_000;
const WAL_KEPT_BYTES = 16 * 1024 * 1024;
// Statements differ only in the number of placeholders, so there are a few hundred at most.
const STATEMENTS_MAX = 500;
// A query that can be a subquery.
const PLAIN_QUERY = /^\s*(select|with)\b/i;

/**
 * Drives a database file through libSQL's own synchronous library. @libsql/client prepares every statement anew, which costs
 * five times the work itself. This driver prepares each statement once per connection (decision 0003).
 */
export class LocalDriver implements Driver {
  readonly remote = false;
  readonly #path: string;
  #db: InstanceType<typeof Libsql>;
  readonly #cached = new LRUCache<string, CachedStatement>({ max: STATEMENTS_MAX });

  constructor(path: string) {
    this.#path = path;
    const before = path === ":memory:" ? null : readSizes(path);
    this.#db = this.#open();
    if (before !== null) this.#assertNotTruncated(before);
  }

  // A truncated file opens without an error. SQLite would notice the missing pages only when it reads them.
  #assertNotTruncated(before: { file: number; wal: number }): void {
    if (before.file === 0 || before.wal > 0) return;
    const pages = this.#execute({
      sql: "select page_count * page_size as bytes from pragma_page_count(), pragma_page_size()",
      args: [],
    });
    if (Number(pages[0]?.bytes) <= before.file) return;
    this.#db.close();
    throw new Error("SQLITE_CORRUPT: the file is shorter than it should be");
  }

  #open(): InstanceType<typeof Libsql> {
    const db = new Libsql(this.#path, { timeout: BUSY_TIMEOUT_MS } as object);
    try {
      // Pragmas belong to one connection (facts, libSQL 1).
      db.exec("pragma journal_mode = wal");
      db.exec("pragma synchronous = full");
      db.exec("pragma foreign_keys = on");
      // Twice the default: a page that many commits change is moved into the file half as often.
      db.exec(`pragma wal_autocheckpoint = ${WAL_PAGES}`);
      // Shortens a WAL file that grew during a long read.
      db.exec(`pragma journal_size_limit = ${WAL_KEPT_BYTES}`);
    } catch (error) {
      db.close();
      throw error;
    }
    return db;
  }

  // Under Deno each all() of the library leaks some bytes (decision 0003), and a service polls every second. So get() reads
  // one row, or many rows as one JSON text.
  query(statement: Statement): Promise<Row[]> {
    const cached = this.#prepare(statement.sql);
    const { columns } = cached;
    if (columns === null || !PLAIN_QUERY.test(statement.sql)) {
      return Promise.resolve(this.#execute(statement));
    }
    cached.list ??= this.#db.prepare(buildListSql(statement.sql, columns)).raw(true);
    const [text, bytes] = cached.list.get(bindArgs(statement.args)) as unknown as [string | null, number];
    if (text === null) {
      throw new Error(
        `a read of ${bytes} bytes is more than ${LIST_MAX_BYTES}: ${statement.sql.slice(0, 200)}`,
      );
    }
    const rows = JSON.parse(text) as unknown[][];
    return Promise.resolve(rows.map((values) => buildRow(columns, values.map(toColumnText))));
  }

  first({ sql, args }: Statement): Promise<Row | null> {
    const { statement, columns } = this.#prepare(sql);
    const values = statement.get(bindArgs(args)) as unknown[] | undefined;
    return Promise.resolve(columns === null || values === undefined ? null : buildRow(columns, values));
  }

  batch(statements: Statement[]): Promise<Row[][]> {
    this.#execute(BEGIN);
    let results: Row[][];
    try {
      results = statements.map((statement) => this.#execute(statement));
      this.#execute(COMMIT);
    } catch (error) {
      // SQLite has already rolled back when the disk is full.
      if (this.#db.inTransaction) this.#execute(ROLLBACK);
      throw error;
    }
    return Promise.resolve(results);
  }

  copyTo(path: string, signal: AbortSignal): Promise<void> {
    if (this.#path === ":memory:") return Promise.reject(new Error("an in-memory database cannot be copied"));
    return copyPages(this.#path, path, signal);
  }

  reconnect(): Promise<void> {
    const fresh = this.#open();
    this.#cached.clear();
    this.#db.close();
    this.#db = fresh;
    return Promise.resolve();
  }

  close(): void {
    // The connection really closes only when the garbage collector has freed its statements. Without this checkpoint, a
    // stopped service would leave a part of its data in the WAL file.
    this.#checkpoint();
    this.#cached.clear();
    this.#db.close();
  }

  #checkpoint(): void {
    try {
      this.#execute({ sql: "pragma wal_checkpoint(truncate)", args: [] });
    } catch {
      // While another process reads, or on a full disk, the WAL file stays. The next start reads it.
    }
  }

  #execute({ sql, args }: Statement): Row[] {
    const { statement, columns } = this.#prepare(sql);
    if (columns === null) {
      statement.run(bindArgs(args));
      return [];
    }
    const rows = statement.all(bindArgs(args)) as unknown[][];
    return rows.map((values) => buildRow(columns, values));
  }

  #prepare(sql: string): CachedStatement {
    const cached = this.#cached.get(sql);
    if (cached !== undefined) return cached;
    const statement = this.#db.prepare(sql);
    let columns: string[] | null = null;
    if (statement.reader) {
      statement.raw(true);
      columns = statement.columns().map((column) => column.name);
    }
    const fresh = { statement, columns };
    this.#cached.set(sql, fresh);
    return fresh;
  }
}

function buildListSql(sql: string, columns: readonly string[]): string {
  const values = columns.map((name) => `"${name.replaceAll('"', '""')}"`);
  return `select iif(octet_length(list) <= ${LIST_MAX_BYTES}, list, null), octet_length(list)
    from (select json_group_array(json_array(${values.join(", ")})) as list from (${sql}))`;
}

// JSON that a query created is a value inside the JSON list. Callers expect it as text.
function toColumnText(value: unknown): unknown {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

function buildRow(columns: readonly string[], values: readonly unknown[]): Row {
  const row: Row = {};
  for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at];
  return row;
}

/** Reads the sizes of a database file and its WAL file. Opening them would make SQLite lose its locks (facts, libSQL 3). */
function readSizes(path: string): { file: number; wal: number } {
  const size = (name: string) => {
    try {
      return Deno.statSync(name).size;
    } catch {
      return 0;
    }
  };
  return { file: size(path), wal: size(`${path}-wal`) };
}

/** Returns damage and dangling references of a closed database file without changing it. Only libSQL opens the file (facts, libSQL 3). */
export function inspectFile(path: string): string[] {
  const db = new Libsql(path);
  try {
    const faults = db.prepare("pragma integrity_check(5)").all() as { integrity_check: string }[];
    const broken = db.prepare("pragma foreign_key_check").all() as { table: string }[];
    return [
      ...faults.map((row) => row.integrity_check).filter((text) => text !== "ok"),
      ...broken.slice(0, 5).map((row) => `a row of ${row.table} refers to a missing row`),
    ];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  } finally {
    db.close();
  }
}

const BEGIN: Statement = { sql: "begin immediate", args: [] };
const COMMIT: Statement = { sql: "commit", args: [] };
const ROLLBACK: Statement = { sql: "rollback", args: [] };
