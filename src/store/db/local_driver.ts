import Libsql from "libsql";
import { LRUCache } from "lru-cache";
import { copyPages } from "./copy.ts";
import { bound, type Driver, type Row, type Statement } from "./driver.ts";

type Prepared = ReturnType<InstanceType<typeof Libsql>["prepare"]>;

interface Known {
  statement: Prepared;
  /** Names of the columns, or null for a statement that returns nothing. */
  columns: string[] | null;
  /** All rows of a query as one JSON text; made when somebody first wants them. */
  list?: Prepared;
}

// A wait inside the library blocks the whole process (facts, libSQL 7), so it is short; Connection waits without blocking.
const BUSY_TIMEOUT_MS = 50;
// Every read has its own, smaller bound (contract 8.18). This one keeps a text that V8 cannot hold, some 500 MB, from ending the process.
const LIST_MAX_BYTES = 64 * 1024 * 1024;
const WAL_PAGES = 2_000;
const WAL_KEPT_BYTES = 16 * 1024 * 1024;
// Texts differ only by the number of their placeholders, so there are a few hundred at most.
const STATEMENTS_MAX = 500;
// A query that can be a subquery.
const PLAIN_QUERY = /^\s*(select|with)\b/i;

/**
 * A database file, through libSQL's own synchronous library. @libsql/client prepares every statement anew, which
 * costs five times the work itself; here each is prepared once per connection (decision 0003).
 */
export class LocalDriver implements Driver {
  readonly remote = false;
  readonly #path: string;
  #db: InstanceType<typeof Libsql>;
  readonly #known = new LRUCache<string, Known>({ max: STATEMENTS_MAX });

  constructor(path: string) {
    this.#path = path;
    const before = path === ":memory:" ? null : sizesOf(path);
    this.#db = this.#open();
    if (before !== null) this.#expectWhole(before);
  }

  // A file that was cut short opens without an error; its missing pages would be noticed only when they are read.
  #expectWhole(before: { file: number; wal: number }): void {
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
      // Twice the usual: a page that many commits change is moved into the file half as often.
      db.exec(`pragma wal_autocheckpoint = ${WAL_PAGES}`);
      // A long reader makes the WAL file grow; this shortens it afterwards.
      db.exec(`pragma journal_size_limit = ${WAL_KEPT_BYTES}`);
    } catch (error) {
      db.close();
      throw error;
    }
    return db;
  }

  // Under Deno each all() of the library leaks some bytes (decision 0003), and a service that polls every second makes many
  // calls. So one row is read by get(), and many rows are read as one JSON text, by get() as well.
  query(statement: Statement): Promise<Row[]> {
    const known = this.#prepared(statement.sql);
    const { columns } = known;
    if (columns === null || !PLAIN_QUERY.test(statement.sql)) {
      return Promise.resolve(this.#execute(statement));
    }
    known.list ??= this.#db.prepare(asList(statement.sql, columns)).raw(true);
    const [text, bytes] = known.list.get(bound(statement.args)) as unknown as [string | null, number];
    if (text === null) {
      throw new Error(
        `a read of ${bytes} bytes is more than ${LIST_MAX_BYTES}: ${statement.sql.slice(0, 200)}`,
      );
    }
    const rows = JSON.parse(text) as unknown[][];
    return Promise.resolve(rows.map((values) => rowOf(columns, values.map(plain))));
  }

  first({ sql, args }: Statement): Promise<Row | null> {
    const { statement, columns } = this.#prepared(sql);
    const values = statement.get(bound(args)) as unknown[] | undefined;
    return Promise.resolve(columns === null || values === undefined ? null : rowOf(columns, values));
  }

  batch(statements: Statement[]): Promise<Row[][]> {
    this.#execute(BEGIN);
    let results: Row[][];
    try {
      results = statements.map((statement) => this.#execute(statement));
      this.#execute(COMMIT);
    } catch (error) {
      // When the disk is full, SQLite has rolled back already.
      if (this.#db.inTransaction) this.#execute(ROLLBACK);
      throw error;
    }
    return Promise.resolve(results);
  }

  copyTo(path: string, signal: AbortSignal): Promise<void> {
    if (this.#path === ":memory:") return Promise.reject(new Error("a database in memory is not copied"));
    return copyPages(this.#path, path, signal);
  }

  reconnect(): Promise<void> {
    const fresh = this.#open();
    this.#known.clear();
    this.#db.close();
    this.#db = fresh;
    return Promise.resolve();
  }

  close(): void {
    // The connection really closes only when the garbage collector has freed its statements. So the WAL file is moved into
    // the database file here, or a stopped service would leave a part of its data in the WAL file.
    this.#checkpoint();
    this.#known.clear();
    this.#db.close();
  }

  #checkpoint(): void {
    try {
      this.#execute({ sql: "pragma wal_checkpoint(truncate)", args: [] });
    } catch {
      // Another reader, or a full disk: the WAL file stays, and the next start reads it.
    }
  }

  #execute({ sql, args }: Statement): Row[] {
    const { statement, columns } = this.#prepared(sql);
    if (columns === null) {
      statement.run(bound(args));
      return [];
    }
    const rows = statement.all(bound(args)) as unknown[][];
    return rows.map((values) => rowOf(columns, values));
  }

  #prepared(sql: string): Known {
    const known = this.#known.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare(sql);
    let columns: string[] | null = null;
    if (statement.reader) {
      statement.raw(true);
      columns = statement.columns().map((column) => column.name);
    }
    const made = { statement, columns };
    this.#known.set(sql, made);
    return made;
  }
}

function asList(sql: string, columns: readonly string[]): string {
  const values = columns.map((name) => `"${name.replaceAll('"', '""')}"`);
  return `select iif(octet_length(list) <= ${LIST_MAX_BYTES}, list, null), octet_length(list)
    from (select json_group_array(json_array(${values.join(", ")})) as list from (${sql}))`;
}

// In the JSON list, JSON that a query made is a value and not a text.
function plain(value: unknown): unknown {
  return typeof value === "object" && value !== null ? JSON.stringify(value) : value;
}

function rowOf(columns: readonly string[], values: readonly unknown[]): Row {
  const row: Row = {};
  for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at];
  return row;
}

/** Sizes of a database file and of its WAL file. They are not opened: SQLite would lose its locks (facts, libSQL 3). */
function sizesOf(path: string): { file: number; wal: number } {
  const size = (name: string) => {
    try {
      return Deno.statSync(name).size;
    } catch {
      return 0;
    }
  };
  return { file: size(path), wal: size(`${path}-wal`) };
}

/**
 * What is wrong with a database file that nobody has open: damage, and rows that refer to missing rows. Only libSQL opens
 * it (facts, libSQL 3). The file is not changed.
 */
export function inspectFile(path: string): string[] {
  const db = new Libsql(path);
  try {
    const faults = db.prepare("pragma integrity_check(5)").all() as { integrity_check: string }[];
    const broken = db.prepare("pragma foreign_key_check").all() as { table: string }[];
    return [
      ...faults.map((row) => row.integrity_check).filter((text) => text !== "ok"),
      ...broken.slice(0, 5).map((row) => `a row of ${row.table} refers to one that is not there`),
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
