export type Value = string | number | boolean | null;

export interface SqlCondition {
  sql: string;
  args: Value[];
}

export interface Statement {
  sql: string;
  args: Value[];
  /** The stages to wake after the commit. */
  wakeup?: string | readonly string[] | undefined;
}

export type Row = Record<string, unknown>;

/** A database driver, for a local file or a server. */
export interface Driver {
  readonly remote: boolean;
  first(statement: Statement): Promise<Row | null>;
  query(statement: Statement): Promise<Row[]>;
  /** Commits all statements or none. Returns the rows of each statement. */
  batch(statements: Statement[]): Promise<Row[][]>;
  /** Writes a consistent copy to a new file without blocking other work. Local files only. Throws when `signal` aborts. */
  copyTo(path: string, signal: AbortSignal): Promise<void>;
  /** Replaces the connection, as needed after a BUSY (facts, libSQL 13). */
  reconnect(): Promise<void>;
  close(): void;
}

/** Converts integers to bigint: both libraries bind a number as REAL, and 1 in a TEXT column would be '1.0' (facts, libSQL 16). */
export function bindArgs(args: Value[]): (string | number | bigint | null)[] {
  return args.map((arg) => {
    if (typeof arg === "boolean") return arg ? 1n : 0n;
    return typeof arg === "number" && Number.isInteger(arg) ? BigInt(arg) : arg;
  });
}
