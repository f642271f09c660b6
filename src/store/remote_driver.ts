import { type Client, createClient } from "@libsql/client";
import { bound, type Driver, type Row, type Statement } from "./driver.ts";

/** A libSQL server (`libsql:`, `http:`, `https:`, `ws:`). Every call is one round trip. */
export class RemoteDriver implements Driver {
  readonly remote = true;
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  /** Opens a client and sends one query, so that a wrong address is noticed at the start. */
  static async open(url: string, authToken: string): Promise<RemoteDriver> {
    const client = createClient({ url, ...(authToken === "" ? {} : { authToken }) });
    await client.execute("select 1");
    return new RemoteDriver(client);
  }

  async query({ sql, args }: Statement): Promise<Row[]> {
    const result = await this.#client.execute({ sql, args: bound(args) });
    return result.rows as unknown as Row[];
  }

  async first(statement: Statement): Promise<Row | null> {
    return (await this.query(statement))[0] ?? null;
  }

  async batch(statements: Statement[]): Promise<Row[][]> {
    const batch = statements.map(({ sql, args }) => ({ sql, args: bound(args) }));
    const results = await this.#client.batch(batch, "write");
    return results.map((result) => result.rows as unknown as Row[]);
  }

  copyTo(): void {
    throw new Error("a libSQL server has its own backup");
  }

  reconnect(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {
    this.#client.close();
  }
}
