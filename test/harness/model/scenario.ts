import { join } from "node:path";
import { expect } from "vitest";
import type { FaultPoint } from "../../../src/base/fault_point.ts";
import { FAKE_AGENT } from "../fakes/agents.ts";
import { type Client, openClient, PASS_HASH } from "../service/client.ts";
import { createTempDir, type ServerProcess, startServer, SVC } from "../service/process.ts";
import { createRandom } from "./schedule.ts";
import { type Conversation, openConversation, pause } from "./workload.ts";

interface WorldOptions {
  env?: Record<string, string>;
  args?: string[];
  /** Seeds the world's random numbers. */
  seed?: number;
  /** The operator's password; its hash is then in `env`. */
  password?: string;
  /** Gives each service the port of the previous one. */
  keepsPort?: boolean;
  /** Runs this program instead of `deno run -A main.ts`. */
  program?: string[];
}

/** A data directory, and the services that run on it one after another. */
export class World implements AsyncDisposable {
  readonly dataDir: string;
  /** Path of the fake agents' ledger of starts and ends. */
  readonly ledger: string;
  /** Returns the next random number from 0 to 1. */
  readonly chance: () => number;
  readonly env: Record<string, string>;
  readonly #folder: { path: string } & AsyncDisposable;
  readonly #options: WorldOptions;
  readonly #resources: AsyncDisposable[] = [];
  #server: ServerProcess | null = null;
  #api: Client | null = null;

  private constructor(folder: { path: string } & AsyncDisposable, options: WorldOptions) {
    this.#folder = folder;
    this.#options = options;
    this.dataDir = join(folder.path, "data");
    this.ledger = join(folder.path, "ledger");
    this.chance = createRandom(options.seed ?? 1);
    this.env = {
      SVC_AUTH__PASSWORD_HASH: PASS_HASH,
      SVC_ENGINES__DEFAULT: "fake",
      SVC_ENGINES__FAKE__KIND: "command",
      SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
      SVC_ENGINES__FAKE__ENV__FAKE_LEDGER: this.ledger,
      ...options.env,
    };
  }

  static async open(options: WorldOptions = {}): Promise<World> {
    const world = new World(await createTempDir(), options);
    await Deno.mkdir(world.dataDir, { mode: 0o700 });
    await Deno.writeTextFile(world.ledger, "");
    return world;
  }

  /** Opens a world and starts its service. */
  static async serve(options: WorldOptions = {}): Promise<World> {
    const world = await World.open(options);
    await world.start();
    return world;
  }

  /** Returns the path of a file of this world outside the data directory. */
  readonly path = (name: string): string => join(this.#folder.path, name);

  get database(): string {
    return join(this.dataDir, "svc.db");
  }

  get server(): ServerProcess {
    if (this.#server === null) throw new Error("The world has no service yet");
    return this.#server;
  }

  get api(): Client {
    if (this.#api === null) throw new Error("The world has no service yet");
    return this.#api;
  }

  /** Starts a service, with a fault point as `<point>:<passage>:kill` or none. */
  async start(fault?: string): Promise<{ server: ServerProcess; api: Client }> {
    const env = { ...this.env, ...(fault === undefined ? {} : { SVC_FAULT: fault }) };
    const { args = [], password, keepsPort, program = SVC } = this.#options;
    const server = await startServer({ dataDir: this.dataDir, env, args, program });
    if (keepsPort) this.env.SVC_SERVER__PORT = new URL(server.url).port;
    const api = await openClient(server.url, password);
    [this.#server, this.#api] = [server, api];
    return { server, api };
  }

  /** Ends the service and starts the next one. */
  async restart(signal: Deno.Signal = "SIGKILL"): Promise<void> {
    await this.server.end(signal);
    await this.start();
  }

  /** Disposes of `resource` after the end of this world's service. */
  use<T extends AsyncDisposable>(resource: T): T {
    this.#resources.unshift(resource);
    return resource;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server?.end("SIGKILL");
    for (const resource of this.#resources) await resource[Symbol.asyncDispose]();
    await this.#folder[Symbol.asyncDispose]();
  }
}

/** Starts the world's service with a conversation in it. */
export async function startConversation(
  world: World,
): Promise<{ server: ServerProcess; api: Client } & Conversation> {
  const { server, api } = await world.start();
  return { server, api, ...await openConversation(api) };
}

/** How the service is lost in each round: at a random time, or at a fault point. */
type Fault =
  | { kind: "kill" | "kill after the action"; afterMs: (world: World) => number }
  | { kind: "point"; point: FaultPoint; passage: number };

/** A row of a table of faults. */
interface Scenario<State> extends WorldOptions {
  rounds: number;
  fault: Fault;
  /** Prepares the world while its service has no fault. */
  setup: (world: World) => Promise<State>;
  /** Works while the fault strikes; stops when the service no longer responds. */
  action: (world: World, state: State, round: number) => Promise<void>;
  /** Acts after the fault, before the next start. */
  away?: (world: World, state: State, round: number) => Promise<void>;
  /** Checks each service that was started after a fault. */
  restarted?: (world: World, state: State, round: number) => Promise<void>;
  /** Checks the invariants after the last round, when a service runs without faults. */
  check: (world: World, state: State) => Promise<void>;
}

/** Runs a scenario: setup; action, fault and restart in each round; check; orderly stop. */
export async function runScenario<State>(scenario: Scenario<State>): Promise<void> {
  await using world = await World.open(scenario);
  await world.start();
  const state = await scenario.setup(world);
  for (let round = 0; round < scenario.rounds; round++) {
    await applyFault(world, scenario.fault, () => scenario.action(world, state, round));
    await scenario.away?.(world, state, round);
    await world.start();
    await scenario.restarted?.(world, state, round);
  }
  await scenario.check(world, state);
  expect(await world.server.end("SIGTERM")).toMatchObject({ code: 0 });
}

async function applyFault(world: World, fault: Fault, action: () => Promise<void>): Promise<void> {
  if (fault.kind !== "point") {
    const kill = () => pause(fault.afterMs(world)).then(() => world.server.end("SIGKILL"));
    if (fault.kind === "kill") await Promise.all([action(), kill()]);
    else await action().then(kill);
    return;
  }
  await world.server.end("SIGTERM");
  const value = `${fault.point}:${fault.passage}:kill`;
  const { server } = await world.start(value);
  await action();
  await server.ended;
  expect(server.stderr).toContain(`SVC_FAULT fired: ${value}`);
}
