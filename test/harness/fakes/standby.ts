import { join } from "node:path";
import { buildFakeEnvironment, readLedger } from "./agents.ts";
import { type Client, openClient } from "../service/client.ts";
import { type ServerProcess, startServer } from "../service/process.ts";
import { waitUntil } from "../wait.ts";
import { SqldSite } from "./sqld.ts";

/**
 * Two or more machines on one database of a real libSQL server. Each has a data directory; they share files
 * and key.
 */
export class Machines implements AsyncDisposable {
  readonly folder: string;
  readonly place: SqldSite;
  readonly ledger: string;
  readonly env: Record<string, string>;
  readonly #started: ServerProcess[] = [];

  private constructor(folder: string, place: SqldSite) {
    this.folder = folder;
    this.place = place;
    this.ledger = join(folder, "ledger");
    this.env = {
      ...buildFakeEnvironment(this.ledger),
      ...place.env,
      SVC_LIMITS__MAX_ATTEMPTS: "100",
    };
  }

  static async open(): Promise<Machines> {
    const folder = await Deno.makeTempDir({ prefix: "svc-machines-" });
    return new Machines(folder, await SqldSite.open());
  }

  dataDir(name: string): string {
    return join(this.folder, name);
  }

  /** Starts the service on a machine; resolves when it is ready or on standby. */
  async start(
    name: string,
    options: { standby?: boolean; env?: Record<string, string> } = {},
  ): Promise<ServerProcess> {
    const dataDir = this.dataDir(name);
    await Deno.mkdir(dataDir, { recursive: true });
    const server = await startServer({
      dataDir,
      standby: options.standby ?? false,
      env: { ...this.env, ...options.env },
    });
    this.#started.push(server);
    return server;
  }

  /** Starts a machine that serves and one on standby, and waits until the first knows the second. */
  async startPair(
    env: Record<string, string> = {},
  ): Promise<{ first: ServerProcess; second: ServerProcess; api: Client }> {
    const first = await this.start("one", { env });
    const second = await this.start("two", { standby: true });
    const api = await openClient(first.url);
    await waitUntil("the first machine knows the standby", async () => {
      const [, count] = /^svc_standbys (\d+)$/m.exec(await api.text("/metrics")) ?? [];
      return count === "1";
    });
    return { first, second, api };
  }

  /** Counts the runs that agents have started on all machines. */
  async countStarts(): Promise<number> {
    return (await readLedger(this.ledger)).filter(({ word }) => word === "start").length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#started) await server.end("SIGKILL");
    await this.place[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true }).catch(() => {});
  }
}

/** Returns the state of a server: `ready`, `standby`, or the reason why it is neither. "" means no response. */
export async function readState(url: string): Promise<string> {
  return await fetch(`${url}/readyz`).then(async (response) => (await response.json()).status, () => "");
}
