import { COLD, fakeAgent, newConversation, STREAM_SECONDS, tasksOf, untilEnded } from "./agents.ts";
import { median, pause, percentile, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const AGENTS = 200;
const READ_PAUSE_MS = 10;

/** What running agents cost: memory while they are idle, and the CPU and the time of a read while they print. */
export async function crowd(): Promise<Row[]> {
  const { folder, program, ledger } = await fakeAgent();
  const base = { BENCH_LEDGER: ledger, BENCH_PAUSE: "0.02" };
  const engines = {
    silent: { kind: "claude", command: program, warm: COLD, env: { ...base, BENCH_HANG: "1" } },
    talking: { kind: "claude", command: program, warm: COLD, env: { ...base, BENCH_LINES: "50" } },
  };
  const config = { engines, limits: { max_concurrent_runs: AGENTS } };
  const memory = await withAgents(config, "silent", async (service, before) => {
    await settleMemory();
    return (await service.memoryMb() - before) / AGENTS;
  });
  const { alone, together, cpu } = await withAgents(config, "talking", async (service) => {
    const [before, started] = [await service.cpuMs(), performance.now()];
    const together = await reads(service, (STREAM_SECONDS - 2) * 1_000);
    const cpu = 100 * (await service.cpuMs() - before) / (performance.now() - started);
    await untilEnded(service, AGENTS);
    return { together, cpu, alone: await reads(service, 3_000) };
  });
  await Deno.remove(folder, { recursive: true });
  return [
    {
      what: `memory of the service per running agent, ${AGENTS} of them`,
      value: memory,
      unit: "MB",
      says: "",
      goal: "under 1 MB",
      met: memory < 1,
    },
    {
      what: `CPU of the service while ${AGENTS} agents say 50 lines a second each`,
      value: cpu,
      unit: "%",
      says: `${(10 * cpu / (AGENTS * 50)).toFixed(3)} ms for each line`,
      goal: "at most one core",
      met: cpu <= 100,
    },
    {
      what: `GET /api/workers/:id meanwhile (p99)`,
      value: percentile(together, 99),
      unit: "ms",
      bare: percentile(alone, 99),
      beside: "with none",
      says: `p50 ${median(together).toFixed(1)} ms, worst ${Math.max(...together).toFixed(0)} ms`,
      goal: "under 50 ms",
      met: percentile(together, 99) < 50,
    },
  ];
}

/** Starts an agent in each of many conversations and calls back when all are running. */
async function withAgents<T>(
  config: object,
  engine: string,
  work: (service: BenchService, memoryBefore: number) => Promise<T>,
): Promise<T> {
  await using service = await BenchService.start({ SVC_SHUTDOWN_GRACE: "0ms" }, config);
  const sessions: string[] = [];
  for (let i = 0; i < AGENTS; i++) sessions.push(await newConversation(service, `w${i}`, engine));
  await settleMemory();
  const before = await service.memoryMb();
  for (const session of sessions) {
    await service.call(`POST /api/local/sessions/${session}/messages`, { content: "go" });
  }
  while ((await tasksOf(service)).running < AGENTS) await pause(20);
  return await work(service, before);
}

/** The ms of reads of a worker, one after the other. */
async function reads(service: BenchService, ms: number): Promise<number[]> {
  const [{ id }] = await service.call("GET /api/workers?page_size=1");
  const times: number[] = [];
  for (const until = performance.now() + ms; performance.now() < until;) {
    const started = performance.now();
    await service.call(`GET /api/workers/${id}`);
    times.push(performance.now() - started);
    await pause(READ_PAUSE_MS);
  }
  return times;
}

/** Waits until memory of finished work is freed. */
function settleMemory(): Promise<void> {
  return pause(3_000);
}
