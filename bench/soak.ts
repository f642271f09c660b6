import { buildFakeEnvironment } from "../test/harness/fakes/agents.ts";
import { computeMedian, computePercentile, formatShort, pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const SECONDS = Number(Deno.env.get("SVC_BENCH_SECONDS") ?? 600);
const REQUESTS_PER_SECOND = 50;
const FLOODING_AGENTS = 8;
const FLOOD = "flood 500000000";
const CHATS = 4;
const GOAL_MS = 250;
const SAMPLE_SECONDS = 5;
// Excludes the memory of the start (caches, compiled code) from the growth.
const WARM_SHARE = 0.2;

/** A request of the mix. Throws for an error response. */
type Ask = (service: BenchService, world: World) => Promise<unknown>;

interface World {
  chats: string[];
  workers: string[];
  /** The latest known execution, for its log. */
  execution: string;
}

const any = <T>(list: T[]): T => list[Math.floor(Math.random() * list.length)] as T;

// Ten requests: four lists, two objects by id, two messages, a log, an overview.
const MIX: Ask[] = [
  (service) => service.call("GET /api/workers?page_size=50"),
  async (service, world) => {
    const [latest] = await service.call("GET /api/executions?page_size=50");
    world.execution = latest?.id ?? world.execution;
  },
  (service, world) => service.call(`GET /api/tasks?worker_id=${any(world.workers)}&page_size=50`),
  (service, world) => service.call(`GET /api/local/sessions/${any(world.chats)}/messages?limit=50`),
  (service, world) => service.call(`GET /api/workers/${any(world.workers)}`),
  (service, world) => service.call(`GET /api/local/sessions/${any(world.chats)}`),
  sendMessage,
  sendMessage,
  async (service, world) => {
    if (world.execution === "") return;
    await service.text(`/api/executions/${world.execution}/logs?tail=100`);
  },
  (service) => service.call("GET /api/system/overview"),
];

function sendMessage(service: BenchService, world: World): Promise<unknown> {
  return service.call(`POST /api/local/sessions/${any(world.chats)}/messages`, { content: "ok" });
}

/**
 * Sends requests at a fixed rate for minutes while agents print as fast as they can. Measures latency from the planned send
 * time, and the growth of memory.
 */
export async function benchSoak(): Promise<Row[]> {
  await using service = await BenchService.start({
    ...buildFakeEnvironment(),
    SVC_AUTH_PASSWORD: "bench",
    SVC_LIMITS__MAX_CONCURRENT_RUNS: "16",
    SVC_LIMITS__MAX_LOG_BYTES: "1000000",
  });
  const world = await populate(service);
  const until = performance.now() + SECONDS * 1_000;
  const curve: number[] = [];
  const watch = setInterval(() => {
    void service.memoryMb().then((mb) => curve.push(mb));
  }, SAMPLE_SECONDS * 1_000);
  const floods = Promise.all(world.workers.slice(0, FLOODING_AGENTS).map((id) => flood(service, id, until)));
  const { waits, errors } = await sendRequests(service, world, until);
  clearInterval(watch);
  const runs = (await floods).reduce((sum, count) => sum + count, 0);
  return buildRows(waits, errors, curve, runs);
}

async function populate(service: BenchService): Promise<World> {
  const workers: string[] = [];
  for (let i = 0; i < FLOODING_AGENTS + CHATS; i++) {
    workers.push((await service.call("POST /api/workers", { name: `w${i}` })).id);
  }
  const chats: string[] = [];
  for (const worker_id of workers.slice(FLOODING_AGENTS)) {
    chats.push((await service.call("POST /api/local/sessions", { worker_id })).id);
  }
  return { chats, workers, execution: "" };
}

/** Makes a worker print one flood after another. Returns their number. */
async function flood(service: BenchService, workerId: string, until: number): Promise<number> {
  let runs = 0;
  for (; performance.now() < until; runs++) {
    const task = { message_id: "soak", worker_id: workerId, instruction: FLOOD, type: "immediate" };
    const { id } = await service.call("POST /api/tasks", task);
    let status = "pending";
    while (status !== "completed" && performance.now() < until) {
      ({ status } = await service.call(`GET /api/tasks/${id}/wait?timeout_ms=60000`));
      if (status === "failed") throw new Error("a flood failed");
    }
  }
  return runs;
}

/** Sends on schedule, whatever the latency. */
async function sendRequests(service: BenchService, world: World, until: number) {
  const waits: number[] = [];
  const errors: string[] = [];
  const open = new Set<Promise<void>>();
  const started = performance.now();
  for (let sent = 0; performance.now() < until; sent++) {
    const due = started + sent * 1_000 / REQUESTS_PER_SECOND;
    const early = due - performance.now();
    if (early > 0) await pause(early);
    const answer = any(MIX)(service, world).then(
      () => void waits.push(performance.now() - due),
      (error) => void errors.push(String(error)),
    ).finally(() => open.delete(answer));
    open.add(answer);
  }
  await Promise.all(open);
  return { waits, errors };
}

function buildRows(waits: number[], errors: string[], curve: number[], runs: number): Row[] {
  const warm = curve.slice(Math.floor(curve.length * WARM_SHARE));
  const part = Math.ceil(warm.length / 4);
  const first = computeMedian(warm.slice(0, part));
  const last = computeMedian(warm.slice(-part));
  const minute = Math.ceil(60 / SAMPLE_SECONDS);
  const minutes = Array.from(
    { length: Math.ceil(curve.length / minute) },
    (_, i) => formatShort(computeMedian(curve.slice(i * minute, (i + 1) * minute))),
  );
  console.error(`memory by the minute, MB: ${minutes.join(" ")}`);
  console.error(`${runs} floods of 500 MB`);
  if (errors.length > 0) console.error(`errors: ${[...new Set(errors)].slice(0, 5).join("\n")}`);
  const p99 = computePercentile(waits, 99);
  const name = `${waits.length} requests at ${REQUESTS_PER_SECOND}/s, ${FLOODING_AGENTS} agents flooding`;
  const bare = { value: computeMedian(waits), unit: "ms" };
  return [
    { ...bare, what: `${name} (p50)` },
    { ...bare, what: `${name} (p99)`, value: p99, max: GOAL_MS },
    { ...bare, what: "answers that were errors", value: errors.length, unit: "errors", max: 0 },
    {
      what: "memory in the last quarter",
      value: last,
      unit: "MB",
      bare: first,
      beside: "in the first",
      says: `${(last / first).toFixed(2)}x`,
      goal: "at most 1.1x",
      met: last / first <= 1.1,
    },
  ];
}
