/** Another process on the same database file, like an operator's shell or a backup tool. */
class ForeignProcess implements AsyncDisposable {
  readonly #child: Deno.ChildProcess;
  readonly #output: ReadableStreamDefaultReader<Uint8Array>;

  protected constructor(child: Deno.ChildProcess, output: ReadableStreamDefaultReader<Uint8Array>) {
    this.#child = child;
    this.#output = output;
  }

  /** Runs the statements, reports that they ran, and exits normally when its stdin is closed. */
  protected static async run(path: string, begin: string) {
    const script = `
      const { default: Libsql } = await import("libsql");
      const db = new Libsql(${JSON.stringify(path)}, { timeout: 5000 });
      for (const sql of ${JSON.stringify(begin.split(";"))}) {
        const statement = db.prepare(sql);
        if (statement.reader) statement.all(); else statement.run();
      }
      console.log("ready");
      await new Response(Deno.stdin.readable).text();
      db.exec("rollback");
      db.close();`;
    const child = new Deno.Command(Deno.execPath(), {
      args: ["eval", script],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const output = child.stdout.getReader();
    await output.read();
    return { child, output };
  }

  /** Releases the lock; resolves when the process has ended. */
  async release(): Promise<void> {
    await this.#child.stdin.close().catch(() => {});
    await this.#child.status;
    await this.#output.cancel().catch(() => {});
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** Holds the write lock. */
export class ForeignWriter extends ForeignProcess {
  static async hold(path: string): Promise<ForeignWriter> {
    const { child, output } = await ForeignProcess.run(path, "begin immediate");
    return new ForeignWriter(child, output);
  }
}

/** Keeps a read transaction open, so that SQLite cannot write the WAL back. */
export class ForeignReader extends ForeignProcess {
  static async open(path: string): Promise<ForeignReader> {
    const { child, output } = await ForeignProcess.run(path, "begin;select count(*) from sqlite_master");
    return new ForeignReader(child, output);
  }

  close(): Promise<void> {
    return this.release();
  }
}
