import { join } from "node:path";
import { SVC } from "../test/harness/service/process.ts";
import { pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const WORKERS = 200;
const ROUNDS = 5;
const GOAL_MS = 50;
const MESSAGE_BYTES = 250_000;
const TEXTS = ["@ ", "@worker-7 ", "@worker- ", "\u0301".repeat(20) + "\u0316".repeat(20)];

/**
 * Measures the longest turn of the event loop while the service routes a megabyte of mentions of 200 workers. Baseline: at
 * rest.
 */
export async function benchTurns(): Promise<Row[]> {
  await using watched = await TurnsService.start();
  const { service } = watched;
  for (let i = 0; i < WORKERS; i++) {
    await service.call("POST /api/workers", { name: `worker-${i}`, engine: "echo" });
  }
  const atRest = await watched.longest(() => pause(5_000));
  const turns: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    turns.push((await watched.longest(() => storm(service))).processorMs);
  }
  return [{
    what: `longest turn: ${WORKERS} workers, a megabyte of mentions, ${ROUNDS} times`,
    value: Math.max(...turns),
    unit: "ms",
    bare: atRest.processorMs,
    beside: "at rest",
    says: `each time: ${turns.map((turn) => turn.toFixed(0)).join(", ")}`,
    max: GOAL_MS,
  }];
}

/** Sends four messages together and waits until all are routed. */
async function storm(service: BenchService): Promise<void> {
  await Promise.all(TEXTS.map(async (text) => {
    const { id } = await service.call("POST /api/local/sessions", {});
    const content = text.repeat(Math.floor(MESSAGE_BYTES / new TextEncoder().encode(text).length));
    await service.call(`POST /api/local/sessions/${id}/messages`, { content });
  }));
  while ((await service.call("GET /api/messages/inbound?status=received,feeding")).length > 0) {
    await pause(50);
  }
  while ((await service.call("GET /api/system/overview")).tasks.running > 0) await pause(50);
}

const PROBE = new URL("./turns_probe.ts", import.meta.url).pathname;

/** The longest turn of an event loop, in processor time of its thread and in wall time. */
export interface Turn {
  processorMs: number;
  wallMs: number;
}

/** A service with a probe for its longest turn. */
export class TurnsService implements AsyncDisposable {
  readonly service: BenchService;
  readonly #folder: string;

  private constructor(service: BenchService, folder: string) {
    this.service = service;
    this.#folder = folder;
  }

  static async start(): Promise<TurnsService> {
    const folder = await Deno.makeTempDir({ prefix: "svc-bench-turns-" });
    const [deno = "", ...rest] = SVC;
    const program = [deno, "run", "--preload", PROBE, ...rest.slice(1)];
    const service = await BenchService.start({ BENCH_TURNS: join(folder, "longest") }, undefined, program);
    return new TurnsService(service, folder);
  }

  /** Returns the longest turn during `work`. */
  async longest(work: () => Promise<unknown>): Promise<Turn> {
    this.service.server.child.kill("SIGUSR2");
    await pause(100);
    await work();
    return JSON.parse(await Deno.readTextFile(join(this.#folder, "longest")));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }
}
