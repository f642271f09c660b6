import { join } from "node:path";
import { SVC } from "../test/harness/process.ts";
import type { Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const PROBE = new URL("./turns_probe.ts", import.meta.url).pathname;
const WORKERS = 200;
const ROUNDS = 5;
const GOAL_MS = 50;
const MESSAGE_BYTES = 250_000;
const TEXTS = ["@ ", "@worker-7 ", "@worker- ", "\u0301".repeat(20) + "\u0316".repeat(20)];

/** The longest turn of the service's event loop while a megabyte of mentions of 200 workers comes in and is routed, beside one at rest. */
export async function benchTurns(): Promise<Row[]> {
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-turns-" });
  const file = join(folder, "longest");
  const [deno = "", ...rest] = SVC;
  const program = [deno, "run", "--preload", PROBE, ...rest.slice(1)];
  await using service = await BenchService.start({ BENCH_TURNS: file }, undefined, program);
  for (let i = 0; i < WORKERS; i++) {
    await service.call("POST /api/workers", { name: `worker-${i}`, engine: "echo" });
  }
  const atRest = await longest(service, file, () => pause(5_000));
  const turns: number[] = [];
  for (let round = 0; round < ROUNDS; round++) turns.push(await longest(service, file, () => storm(service)));
  await Deno.remove(folder, { recursive: true });
  return [{
    what: `longest turn: ${WORKERS} workers, a megabyte of mentions, ${ROUNDS} times`,
    value: Math.max(...turns),
    unit: "ms",
    bare: atRest,
    beside: "at rest",
    says: `each time: ${turns.map((turn) => turn.toFixed(0)).join(", ")}`,
    goal: `under ${GOAL_MS} ms`,
    met: Math.max(...turns) < GOAL_MS,
  }];
}

/** Four messages at once, until each has been routed. */
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

async function longest(service: BenchService, file: string, work: () => Promise<void>): Promise<number> {
  service.server.child.kill("SIGUSR2");
  await pause(100);
  await work();
  return Number(await Deno.readTextFile(file));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
