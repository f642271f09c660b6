import { freePort } from "../service/port.ts";

/** The program of a real libSQL server; undefined where there is none, and then the tests that need it are left out. CI names one. */
export const SQLD = Deno.env.get("SVC_TEST_SQLD");

const SHARED_KEY = "one key for every service on a database";

/** A real libSQL server on loopback, on a folder of its own; ended and removed when the test disposes of it. */
export class Sqld implements AsyncDisposable {
  readonly url: string;
  readonly #folder: string;
  #child: Deno.ChildProcess;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.url = `http://127.0.0.1:${port}`;
    this.#child = spawn(folder, this.url);
  }

  /** Resolves when it answers. */
  static async start(): Promise<Sqld> {
    const sqld = new Sqld(await Deno.makeTempDir({ prefix: "svc-sqld-" }), freePort());
    await sqld.#healthy();
    return sqld;
  }

  /** Ends it as a crash does, and starts it again on the same folder and address. */
  async restart(): Promise<void> {
    await this.#end();
    this.#child = spawn(this.#folder, this.url);
    await this.#healthy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
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

  async #end(): Promise<void> {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#child.status;
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

/** A libSQL server and what all services on its database share: key and files. */
export class Place implements AsyncDisposable {
  readonly sqld: Sqld;
  readonly files: string;

  private constructor(sqld: Sqld, files: string) {
    this.sqld = sqld;
    this.files = files;
  }

  static async open(): Promise<Place> {
    return new Place(await Sqld.start(), await Deno.makeTempDir({ prefix: "svc-files-" }));
  }

  /** Keys of config.yaml. */
  get config() {
    return { database: { url: this.sqld.url }, files_dir: this.files, auth: { jwt_secret: SHARED_KEY } };
  }

  /** The same as the environment of a process. */
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
