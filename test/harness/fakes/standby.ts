import { join } from "node:path";
import { fakeEnvironment, readLedger } from "./agents.ts";
import { type ServerProcess, startServer } from "../service/process.ts";
import { Place } from "./sqld.ts";

/** Two machines, or more, on one database of a real libSQL server: each has its data directory, and they share files and key. */
export class Machines implements AsyncDisposable {
  readonly folder: string;
  readonly place: Place;
  readonly ledger: string;
  readonly env: Record<string, string>;
  readonly #started: ServerProcess[] = [];

  private constructor(folder: string, place: Place) {
    this.folder = folder;
    this.place = place;
    this.ledger = join(folder, "ledger");
    this.env = {
      ...fakeEnvironment(this.ledger),
      ...place.env,
      SVC_LIMITS__MAX_ATTEMPTS: "100",
    };
  }

  static async open(): Promise<Machines> {
    const folder = await Deno.makeTempDir({ prefix: "svc-machines-" });
    return new Machines(folder, await Place.open());
  }

  /** The data directory of a machine. */
  dataDir(name: string): string {
    return join(this.folder, name);
  }

  /** Starts the service on a machine: it is ready, or stands by. */
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

  /** How often an agent was started. */
  async starts(): Promise<number> {
    return (await readLedger(this.ledger)).filter(({ word }) => word === "start").length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of this.#started) await server.end("SIGKILL");
    await this.place[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true }).catch(() => {});
  }
}

/** What a server says of itself: `ready`, `standby`, or why not; "" when it does not answer. */
export async function stateOf(url: string): Promise<string> {
  return await fetch(`${url}/readyz`).then(async (response) => (await response.json()).status, () => "");
}
