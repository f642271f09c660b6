import { type ServerProcess, startServer } from "../test/harness/process.ts";
import { StreamClient } from "../test/harness/stream.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** A real service in a process of its own, with an operator's login. */
export class BenchService implements AsyncDisposable {
  readonly server: ServerProcess;
  readonly token: string;
  readonly #folder: string;

  private constructor(server: ServerProcess, token: string, folder: string) {
    this.server = server;
    this.token = token;
    this.#folder = folder;
  }

  static async start(env: Record<string, string> = {}): Promise<BenchService> {
    const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
    const server = await startServer({ dataDir: folder, env: { SVC_AUTH_PASSWORD: "bench", ...env } });
    const response = await fetch(`${server.url}/api/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "admin", password: "bench" }),
    });
    return new BenchService(server, (await response.json()).access_token, folder);
  }

  get url(): string {
    return this.server.url;
  }

  async call(route: string, body?: unknown): Promise<Json> {
    const [method = "GET", path = ""] = route.split(" ");
    const response = await fetch(this.url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${route}: ${response.status} ${await response.text()}`);
    return await response.json();
  }

  stream(sessionId: string): Promise<StreamClient> {
    return StreamClient.open(`${this.url}/api/local/sessions/${sessionId}/stream`, {
      authorization: `Bearer ${this.token}`,
    });
  }

  /** Resident memory of the server's process, in MB. */
  async memoryMb(): Promise<number> {
    const status = await Deno.readTextFile(`/proc/${this.server.child.pid}/status`);
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? NaN) / 1024;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.end("SIGTERM");
    await Deno.remove(this.#folder, { recursive: true });
  }
}
