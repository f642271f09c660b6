import { findFreePort } from "../service/port.ts";
import { endProcess } from "../service/process.ts";

/** The program of a real libSQL server. Undefined skips the tests that need it; CI sets it. */
export const SQLD = Deno.env.get("SVC_TEST_SQLD");

const SHARED_KEY = "one key for every service on a database";

/** A real libSQL server on loopback with its own folder, removed on disposal. */
class Sqld implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  #child: Deno.ChildProcess;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.url = `http://127.0.0.1:${port}`;
    this.#child = spawn(folder, this.url);
  }

  /** Resolves when the server responds. */
  static async start(): Promise<Sqld> {
    const sqld = new Sqld(await Deno.makeTempDir({ prefix: "svc-sqld-" }), findFreePort());
    await sqld.#healthy();
    return sqld;
  }

  /** Kills the server and starts it again on the same folder and address. */
  async restart(): Promise<void> {
    await endProcess(this.#child, "SIGKILL");
    this.#child = spawn(this.#folder, this.url);
    await this.#healthy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await endProcess(this.#child, "SIGKILL");
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #healthy(): Promise<void> {
    while (true) {
      const response = await fetch(`${this.url}/health`).catch(() => null);
      await response?.body?.cancel();
      if (response?.ok) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

function spawn(folder: string, url: string): Deno.ChildProcess {
  const address = new URL(url).host;
  return new Deno.Command(SQLD ?? "sqld", {
    args: ["--db-path", folder, "--http-listen-addr", address, "--max-concurrent-connections", "4"],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
}

/** A libSQL server and everything that services on its database share: key and files. */
export class SqldSite implements AsyncDisposable {
  private constructor(readonly sqld: Sqld, readonly files: string) {}

  static async open(): Promise<SqldSite> {
    return new SqldSite(await Sqld.start(), await Deno.makeTempDir({ prefix: "svc-files-" }));
  }

  get config() {
    return { database: { url: this.sqld.url }, files_dir: this.files, auth: { jwt_secret: SHARED_KEY } };
  }

  /** Returns `config` as the environment of a process. */
  get env(): Record<string, string> {
    return {
      SVC_DATABASE__URL: this.sqld.url,
      SVC_FILES_DIR: this.files,
      SVC_AUTH__JWT_SECRET: SHARED_KEY,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sqld[Symbol.asyncDispose]();
    await Deno.remove(this.files, { recursive: true });
  }
}
