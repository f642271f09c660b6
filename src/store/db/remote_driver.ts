import { type Client, createClient } from "@libsql/client";
import { bound, type Driver, type Row, type Statement } from "./driver.ts";

/** How long a libSQL server may take for an answer. Its client has no limit: without one, a request waits for ever (facts, libSQL server 7). */
export const ANSWER_MAX_MS = 5_000;

/** A libSQL server (`libsql:`, `http:`, `https:`, `ws:`). Every call is one round trip, with a time limit. */
export class RemoteDriver implements Driver {
  readonly remote = true;
  readonly #client: Client;
  readonly #answerMaxMs: number;

  private constructor(client: Client, answerMaxMs: number) {
    this.#client = client;
    this.#answerMaxMs = answerMaxMs;
  }

  /** Opens a client and sends one query, so that a wrong address is noticed at the start. */
  static async open(url: string, authToken: string, answerMaxMs = ANSWER_MAX_MS): Promise<RemoteDriver> {
    const client = createClient({
      url,
      ...(authToken === "" ? {} : { authToken }),
      // The connection is given up, too, or those of a server that hangs would add up.
      fetch: (request: Request) => fetch(request, { signal: AbortSignal.timeout(answerMaxMs) }),
    });
    const driver = new RemoteDriver(client, answerMaxMs);
    await driver.query({ sql: "select 1", args: [] });
    return driver;
  }

  async query({ sql, args }: Statement): Promise<Row[]> {
    const result = await this.#inTime(this.#client.execute({ sql, args: bound(args) }));
    return result.rows as unknown as Row[];
  }

  async first(statement: Statement): Promise<Row | null> {
    return (await this.query(statement))[0] ?? null;
  }

  /** After a time-out it is not known whether it was committed. */
  async batch(statements: Statement[]): Promise<Row[][]> {
    const batch = statements.map(({ sql, args }) => ({ sql, args: bound(args) }));
    const results = await this.#inTime(this.#client.batch(batch, "write"));
    return results.map((result) => result.rows as unknown as Row[]);
  }

  copyTo(): Promise<void> {
    return Promise.reject(new Error("a libSQL server has its own backup"));
  }

  reconnect(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.#client.close();
  }

  // Also for web sockets, and for a server that begins its answer and never ends it.
  async #inTime<T>(work: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      const error = new Error(`the database server timed out: no answer in ${this.#answerMaxMs} ms`);
      timer = setTimeout(() => reject(error), this.#answerMaxMs);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
