import { type Client, createClient } from "@libsql/client";
import { bindArgs, type Driver, type Row, type Statement } from "./driver.ts";

/** Time limit of a libSQL server's response. Its client has none, and a request would wait permanently (facts, libSQL server 7). */
export const ANSWER_MAX_MS = 5_000;

/** Drives a libSQL server (`libsql:`, `http:`, `https:`, `ws:`). Every call is one round trip with a time limit. */
export class RemoteDriver implements Driver {
  readonly remote = true;
  readonly #client: Client;
  readonly #answerMaxMs: number;

  private constructor(client: Client, answerMaxMs: number) {
    this.#client = client;
    this.#answerMaxMs = answerMaxMs;
  }

  /** Opens a client and sends one query, so that a wrong address fails at the start. */
  static async open(url: string, authToken: string, answerMaxMs = ANSWER_MAX_MS): Promise<RemoteDriver> {
    const client = createClient({
      url,
      ...(authToken === "" ? {} : { authToken }),
      // Also drops the connection. Those of a hanging server would add up.
      fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(answerMaxMs) }),
    });
    const driver = new RemoteDriver(client, answerMaxMs);
    await driver.query({ sql: "select 1", args: [] });
    return driver;
  }

  async query({ sql, args }: Statement): Promise<Row[]> {
    const result = await this.#limitTime(this.#client.execute({ sql, args: bindArgs(args) }));
    return result.rows as unknown as Row[];
  }

  async first(statement: Statement): Promise<Row | null> {
    return (await this.query(statement))[0] ?? null;
  }

  /** Commits all statements or none. After a timeout, the commit may have succeeded. */
  async batch(statements: Statement[]): Promise<Row[][]> {
    const batch = statements.map(({ sql, args }) => ({ sql, args: bindArgs(args) }));
    const results = await this.#limitTime(this.#client.batch(batch, "write"));
    return results.map((result) => result.rows as unknown as Row[]);
  }

  copyTo(): Promise<void> {
    return Promise.reject(
      new Error("Cannot copy a database on a libSQL server. Use the server's own backup"),
    );
  }

  reconnect(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.#client.close();
  }

  // Applies to web sockets and to responses that never end, too.
  async #limitTime<T>(work: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const timeout = new Promise<never>((_, reject) => {
      const error = new Error(`the database server timed out: no answer in ${this.#answerMaxMs} ms`);
      timer = setTimeout(() => reject(error), this.#answerMaxMs);
    });
    try {
      return await Promise.race([work, timeout]);
    } finally {
      clearTimeout(timer);
    }
  }
}
