import { join } from "node:path";
import { FAULT_POINTS } from "../../src/base/fault_point.ts";
import { FAKE_AGENT } from "../harness/fakes/agents.ts";
import { PASSWORD, PASSWORD_HASH } from "../harness/service/app.ts";
import { type Client, openClient } from "../harness/service/client.ts";
import { type ServerProcess, startServer, SVC } from "../harness/service/process.ts";
import { ROOT } from "../harness/house/tree.ts";

/** The deaths of a server that is killed repeatedly. */
interface Deaths {
  kills: number;
  /** Kills by a fault point, of all kills. */
  faults: number;
  /** Times from each start to ready, in ms. */
  starts: number[];
  /** The duration of each stop in ms. */
  stops: number[];
}

/** The command that runs `svc` with short leases. */
export const SHORT_SERVE = [Deno.execPath(), "run", "-A", join(ROOT, "test/torture/short_serve.ts")];

interface VictimOptions {
  filesMax?: number;
  env?: Record<string, string>;
  program?: string[];
}

/** The server of a torture: one data directory, and a process on it that is killed and started again. */
export class Victim {
  readonly dataDir: string;
  readonly agentLedger: string;
  readonly deaths: Deaths = { kills: 0, faults: 0, starts: [], stops: [] };
  /** The client of the server, or null without a server. */
  api: Client | null = null;
  readonly #env: Record<string, string>;
  readonly #log: Deno.FsFile;
  readonly #filesMax: number;
  readonly #program: string[] | undefined;
  #server: ServerProcess | null = null;
  #changed = Promise.withResolvers<void>();

  constructor(folder: string, options: VictimOptions = {}) {
    this.#program = options.program;
    this.#filesMax = options.filesMax ?? 0;
    this.dataDir = join(folder, "data");
    this.agentLedger = join(folder, "agents.log");
    Deno.mkdirSync(this.dataDir, { mode: 0o700 });
    this.#log = Deno.openSync(join(folder, "server.log"), { create: true, append: true });
    this.#env = {
      SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH,
      SVC_ENGINES__DEFAULT: "fake",
      SVC_ENGINES__FAKE__KIND: "command",
      SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
      SVC_ENGINES__FAKE__TIMEOUT: "20s",
      SVC_ENGINES__FAKE__ENV__FAKE_LEDGER: this.agentLedger,
      SVC_BEE__QUIET_WINDOW: "50ms",
      // Four workers do the work of a hundred, and none of it may wait for the hourly limit.
      SVC_LIMITS__MAX_RUNS_PER_HOUR: "1000000",
      ...options.env,
    };
  }

  /** Starts a server, possibly with a fault; resolves when it is ready or was killed before that. */
  async start(fault = ""): Promise<void> {
    const program = Deno.env.get("SVC_PROGRAM");
    const began = performance.now();
    try {
      this.#server = await startServer({
        dataDir: this.dataDir,
        env: { ...this.#env, ...(fault === "" ? {} : { SVC_FAULT: fault }) },
        program: this.#limited(this.#program ?? (program === undefined ? SVC : [program])),
      });
      this.deaths.starts.push(performance.now() - began);
      this.api = await openClient(this.#server.url, PASSWORD);
    } catch (error) {
      if (fault === "" || !String(error).match(/SVC_FAULT fired|fetch failed|error sending/)) throw error;
      this.api = null;
      this.deaths.kills++;
      this.deaths.faults++;
      await this.#server?.end("SIGKILL");
      this.#server = null;
      return;
    }
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /** Returns the server's output since its start. */
  get said(): string {
    return this.#server?.stderr ?? "";
  }

  /** Returns the server's resident memory in bytes; 0 without a server. */
  memory(): Promise<number> {
    return this.#server?.memory() ?? Promise.resolve(0);
  }

  #limited(program: string[]): string[] {
    return this.#filesMax === 0
      ? program
      : ["bash", "-c", `ulimit -n ${this.#filesMax}; exec "$0" "$@"`, ...program];
  }

  /** Kills the server with SIGKILL. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    this.api = null;
    this.#server = null;
    const { signal } = await server.end("SIGKILL");
    this.#keep(server.stderr);
    if (signal !== "SIGKILL") {
      throw new Error(`the server ended unexpectedly: ${server.stderr.slice(-2_000)}`);
    }
    this.deaths.kills++;
    if (server.stderr.includes("SVC_FAULT fired")) this.deaths.faults++;
  }

  /** Resolves when the server has ended. */
  get ended(): Promise<unknown> {
    return this.#server?.ended ?? Promise.resolve();
  }

  /** Stops the server for `ms`, like a suspended machine. */
  async freeze(ms: number): Promise<void> {
    const server = this.#server;
    if (server === null) return;
    try {
      server.child.kill("SIGSTOP");
      this.deaths.stops.push(ms);
      await new Promise((resolve) => setTimeout(resolve, ms));
      server.child.kill("SIGCONT");
    } catch {
      // A fault point has ended the process.
    }
  }

  /** Ends the server in order; returns its exit code. */
  async stop(): Promise<number> {
    const server = this.#server;
    if (server === null) return 0;
    this.api = null;
    const { code } = await server.end("SIGTERM");
    this.#keep(server.stderr);
    this.#log.close();
    return code;
  }

  /** Returns a client of a running server; waits for one if necessary. */
  async reach(): Promise<Client> {
    while (this.api === null) await this.#changed.promise;
    return this.api;
  }

  // The signing key and tokens must not be in this output either; the checker reads it.
  #keep(text: string): void {
    this.#log.writeSync(new TextEncoder().encode(text));
  }
}

/** Returns a fault at a random point and passage; "" for none. */
export function chooseFault(chance: () => number): string {
  if (chance() > 0.35) return "";
  const points = FAULT_POINTS.filter((point) => !/^(migrate|rotate|tree|push|device|launch)\./.test(point));
  const point = points[Math.floor(chance() * points.length)] ?? "claim.post";
  return `${point}:${1 + Math.floor(chance() * 12)}:kill`;
}
