/** A value that can be bound or read. */
export type Value = string | number | boolean | null;

/** A condition in SQL with its values. */
export interface SqlCondition {
  sql: string;
  args: Value[];
}

/** One SQL statement with its positional arguments. */
export interface Statement {
  sql: string;
  args: Value[];
  /** The stages that this statement makes work for: woken after the commit. */
  wakeup?: string | readonly string[] | undefined;
}

/** A row by column name. Every query names its columns, so a type per query is enough. */
export type Row = Record<string, unknown>;

/** What a database driver has to do; the same on a local file and on a server. */
export interface Driver {
  readonly remote: boolean;
  /** The first row of a query, or null. */
  first(statement: Statement): Promise<Row | null>;
  query(statement: Statement): Promise<Row[]>;
  /** Commits all or nothing; answers the rows that each statement returned. */
  batch(statements: Statement[]): Promise<Row[][]>;
  /** Writes a consistent copy to a new file, in steps that let others go on. Not on a server. Throws when `signal` says so. */
  copyTo(path: string, signal: AbortSignal): Promise<void>;
  /** Closes the connection and opens a new one; needed after a BUSY (facts, libSQL 13). */
  reconnect(): Promise<void>;
  close(): void;
}

/** Arguments with whole numbers as bigint: both libraries bind a number as REAL, and 1 in a TEXT column would be '1.0' (facts, libSQL 16). */
export function bound(args: Value[]): (string | number | bigint | null)[] {
  return args.map((arg) => {
    if (typeof arg === "boolean") return arg ? 1n : 0n;
    return typeof arg === "number" && Number.isInteger(arg) ? BigInt(arg) : arg;
  });
}
