import { type ServerProcess, startServer, SVC } from "../test/harness/service/process.ts";
import { StreamClient } from "../test/harness/stream.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** A service in a separate process, with an operator's login. */
export class BenchService implements AsyncDisposable {
  server: ServerProcess;
  token: string;
  readonly #folder: string;
  readonly #env: Record<string, string>;
  readonly #program: string[];

  private constructor(
    server: ServerProcess,
    token: string,
    { folder, env, program }: { folder: string; env: Record<string, string>; program: string[] },
  ) {
    this.server = server;
    this.token = token;
    this.#folder = folder;
    this.#env = env;
    this.#program = program;
  }

  /** `config` has the keys of a config.yaml. `program` replaces `deno run -A main.ts`. */
  static async start(
    env: Record<string, string> = {},
    config?: object,
    program: string[] = SVC,
  ): Promise<BenchService> {
    const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
    const all = { SVC_AUTH_PASSWORD: "bench", ...env };
    // JSON is valid YAML, and the server reads this file in its working directory.
    if (config !== undefined) await Deno.writeTextFile(`${folder}/config.yaml`, JSON.stringify(config));
    const server = await startServer({ dataDir: folder, env: all, program });
    return new BenchService(server, await login(server), { folder, env: all, program });
  }

  /** Stops the server, lets `work` change its data directory and starts it again. Returns the ms of the start. */
  async restartWith(work: (dataDir: string) => Promise<void>): Promise<number> {
    await this.server.end("SIGTERM");
    await work(this.#folder);
    const started = performance.now();
    this.server = await startServer({ dataDir: this.#folder, env: this.#env, program: this.#program });
    const took = performance.now() - started;
    await this.renewToken();
    return took;
  }

  /** Logs in again. The token of a login is valid for 15 min. */
  async renewToken(): Promise<void> {
    this.token = await login(this.server);
  }

  get url(): string {
    return this.server.url;
  }

  async call(route: string, body?: unknown): Promise<Json> {
    const [method = "GET", path = ""] = route.split(" ");
    const response = await fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        accept: "application/json",
        "content-type": "application/json",
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${route}: ${response.status} ${await response.text()}`);
    return await response.json();
  }

  /** Returns the body of a GET as text. */
  async text(path: string): Promise<string> {
    const response = await fetch(this.url + path, { headers: { authorization: `Bearer ${this.token}` } });
    if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`);
    return await response.text();
  }

  stream(sessionId: string): Promise<StreamClient> {
    return StreamClient.open(`${this.url}/api/local/sessions/${sessionId}/stream`, {
      authorization: `Bearer ${this.token}`,
    });
  }

  /** Returns the resident memory of the server process, in MB. */
  async memoryMb(): Promise<number> {
    const status = await Deno.readTextFile(`/proc/${this.server.child.pid}/status`);
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? NaN) / 1024;
  }

  /** Returns the CPU time of the server so far. */
  async cpuMs(): Promise<number> {
    const fields =
      (await Deno.readTextFile(`/proc/${this.server.child.pid}/stat`)).split(") ")[1]?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) * 10;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.end("SIGTERM");
    await Deno.remove(this.#folder, { recursive: true });
  }
}

async function login(server: ServerProcess): Promise<string> {
  const response = await fetch(`${server.url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password: "bench" }),
  });
  return (await response.json()).access_token;
}
