import { join } from "node:path";
import { computeMedian, computePercentile, pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const STARTS = 50;
const AGENTS = 200;
const READ_PAUSE_MS = 10;
// The time until memory of finished work is freed.
const MEMORY_SETTLES_MS = 3_000;

/** Measures agents: start of a process, memory while idle, CPU and read latency while they print. */
export async function benchAgents(): Promise<Row[]> {
  const { folder, program, ledger } = await createFakeAgent();
  const base = { BENCH_LEDGER: ledger, BENCH_PAUSE: "0.02" };
  const engines = {
    silent: { kind: "claude", command: program, warm: COLD, env: { ...base, BENCH_HANG: "1" } },
    talking: { kind: "claude", command: program, warm: COLD, env: { ...base, BENCH_LINES: "50" } },
  };
  const config = { engines, limits: { max_concurrent_runs: AGENTS } };
  const memory = await runWithAgents(config, "silent", async (service, before) => {
    await pause(MEMORY_SETTLES_MS);
    return (await service.memoryMb() - before) / AGENTS;
  });
  const { alone, together, cpu } = await runWithAgents(config, "talking", async (service) => {
    const [before, started] = [await service.cpuMs(), performance.now()];
    const together = await measureReads(service, (STREAM_SECONDS - 2) * 1_000);
    const cpu = 100 * (await service.cpuMs() - before) / (performance.now() - started);
    await waitUntilEnded(service, AGENTS);
    return { together, cpu, alone: await measureReads(service, 3_000) };
  });
  await Deno.remove(folder, { recursive: true });
  return [
    await measureStarts(),
    {
      what: `memory of the service per running agent, ${AGENTS} of them`,
      value: memory,
      unit: "MB",
      max: 1,
    },
    {
      what: `CPU of the service while ${AGENTS} agents say 50 lines a second each`,
      value: cpu,
      unit: "%",
      says: `${(10 * cpu / (AGENTS * 50)).toFixed(3)} ms for each line`,
      max: 100,
    },
    {
      what: `GET /api/workers/:id meanwhile (p99)`,
      value: computePercentile(together, 99),
      unit: "ms",
      bare: computePercentile(alone, 99),
      beside: "with none",
      says: `p50 ${computeMedian(together).toFixed(1)} ms, worst ${Math.max(...together).toFixed(0)} ms`,
      max: 50,
    },
  ];
}

/** Starts an agent in each of many conversations and runs `work` when all agents run. */
async function runWithAgents<T>(
  config: object,
  engine: string,
  work: (service: BenchService, memoryBefore: number) => Promise<T>,
): Promise<T> {
  await using service = await BenchService.start({ SVC_SHUTDOWN_GRACE: "0ms" }, config);
  const sessions: string[] = [];
  for (let i = 0; i < AGENTS; i++) sessions.push(await createConversation(service, `w${i}`, engine));
  await pause(MEMORY_SETTLES_MS);
  const before = await service.memoryMb();
  for (const session of sessions) {
    await service.call(`POST /api/local/sessions/${session}/messages`, { content: "go" });
  }
  while ((await countTasks(service)).running < AGENTS) await pause(20);
  return await work(service, before);
}

/** Reads a worker repeatedly. Returns the ms of each read. */
async function measureReads(service: BenchService, ms: number): Promise<number[]> {
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

/** Measures the time from a message request to the start of its agent's process. */
async function measureStarts(): Promise<Row> {
  const { folder, program, ledger } = await createFakeAgent();
  const engine = { command: program, warm: COLD, env: { BENCH_LEDGER: ledger, BENCH_PAUSE: "1" } };
  await using service = await BenchService.start({}, { engines: { default: "claude", claude: engine } });
  const session = await createConversation(service, "Ada");
  const sent = new Map<string, number>();
  for (let i = 0; i < STARTS; i++) {
    const at = performance.timeOrigin + performance.now();
    const { message_id } = await service.call(`POST /api/local/sessions/${session}/messages`, {
      content: "go",
    });
    sent.set(message_id, at);
    await waitUntilEnded(service, i + 1);
  }
  const waits = (await Deno.readTextFile(ledger)).trim().split("\n").map((line) => {
    const [message = "", seconds = "0"] = line.split(" ");
    return Number(seconds) * 1e3 - (sent.get(message) ?? NaN);
  });
  await Deno.remove(folder, { recursive: true });
  return {
    what: "message -> agent's process started (p50)",
    value: computeMedian(waits),
    unit: "ms",
    says: `p99 ${computePercentile(waits, 99).toFixed(0)} ms`,
  };
}

/** Starts a process per turn. The bench `warm` measures processes that stay open. */
const COLD = { max: 0 };

const STREAM_SECONDS = 10;

// Prints events like Claude Code. bash can read the time and wait without starting another program.
const AGENT = `#!/bin/bash
echo "$SVC_MESSAGE_ID $EPOCHREALTIME" >> "$BENCH_LEDGER"
exec 3<> <(:)
echo '{"type":"system","subtype":"init","session_id":"'$SVC_RUN_ID'"}'
for ((i = 0; i < ${STREAM_SECONDS} * \${BENCH_LINES:-0}; i++)); do
  echo '{"type":"assistant","message":{"content":[{"type":"text","text":"line '$i' of what an agent has to say"}]}}'
  read -rt "$BENCH_PAUSE" -u 3
done
[ -z "$BENCH_HANG" ] || read -ru 3
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","usage":{"input_tokens":1,"output_tokens":1}}'
`;

/** Creates a temporary folder with a program that prints like Claude Code. */
async function createFakeAgent(): Promise<{ folder: string; program: string; ledger: string }> {
  const folder = await Deno.makeTempDir({ prefix: "svc-bench-agent-" });
  const program = join(folder, "agent");
  await Deno.writeTextFile(program, AGENT);
  await Deno.chmod(program, 0o755);
  return { folder, program, ledger: join(folder, "ledger") };
}

/** Creates a worker and a conversation with it. Returns the conversation's id. */
export async function createConversation(service: BenchService, name: string, engine = ""): Promise<string> {
  const worker = await service.call("POST /api/workers", { name, engine });
  return (await service.call("POST /api/local/sessions", { worker_id: worker.id })).id;
}

/** Waits until `count` runs have ended. */
export async function waitUntilEnded(service: BenchService, count: number): Promise<void> {
  for (let ended = 0; ended < count; await pause(5)) {
    const { completed, failed } = await countTasks(service);
    ended = completed + failed;
  }
}

/** Counts the tasks by status. */
async function countTasks(
  service: BenchService,
): Promise<Record<"running" | "completed" | "failed", number>> {
  return (await service.call("GET /api/system/overview")).tasks;
}
