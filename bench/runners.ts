import { join } from "node:path";
import { type RunnerProcess, startRunner } from "../test/harness/service/runner.ts";
import { computeMedian, pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

// Label of the runners and their workers.
const RUNS_ON = ["bench"];
const PICKUPS = 200;
const WARM = 10;
const RUNNERS = 4;
const WORKERS = 50;
const TASKS = Number(Deno.env.get("SVC_BENCH_TASKS") ?? 10_000);
const BATCH = 500;
// Not more often, because a request for the overview costs some ms.
const LOOK_EVERY_MS = 250;
const LOG_BYTES = 16 * 1024 * 1024;
const LOG_PART_BYTES = 512 * 1024;
const LOGS = 5;

/** Measures runners against the service's own machine: time to a run's start, throughput, log transfer. */
export async function benchRunners(): Promise<Row[]> {
  return [await measurePickups(), ...await measureThroughput(), await measureLogs()];
}

/** Returns an engine that writes its start time to the ledger. */
function createStampEngine(ledger: string, then = ""): object {
  const script = `echo $SVC_TASK_ID $EPOCHREALTIME >> ${ledger}${then}`;
  return { kind: "command", command: "bash", args: ["-c", script] };
}

/** Returns the start time of each task's program, Unix ms. */
async function readStamps(ledger: string): Promise<Map<string, number>> {
  const lines = (await Deno.readTextFile(ledger)).trim().split("\n");
  return new Map(lines.map((line) => {
    const [task = "", seconds = ""] = line.split(" ");
    return [task, Number(seconds) * 1e3];
  }));
}

/** A service with real `svc runner` processes and a folder that all of them can write to. */
class World implements AsyncDisposable {
  readonly service: BenchService;
  readonly folder: string;
  readonly #runners: RunnerProcess[] = [];

  private constructor(service: BenchService, folder: string) {
    this.service = service;
    this.folder = folder;
  }

  static async open(runners: number, enginesIn: (folder: string) => object): Promise<World> {
    const folder = await Deno.makeTempDir({ prefix: "svc-bench-" });
    const engines = { default: "echo", ...enginesIn(folder) };
    const limits = { max_concurrent_runs: WORKERS, max_log_bytes: 2 * LOG_BYTES };
    const world = new World(await BenchService.start({}, { engines, limits }), folder);
    for (let n = 0; n < runners; n++) {
      const { url } = world.service;
      const { token } = await world.service.call("POST /api/runners", { name: `r${n}`, labels: RUNS_ON });
      const config = `max_runs: ${WORKERS}\nengines: ${JSON.stringify(engines)}\n`;
      world.#runners.push(await startRunner({ token, url, root: join(folder, `r${n}`), config }));
    }
    for (let all = false; !all;) {
      const states: { state: string }[] = await world.service.call("GET /api/runners");
      all = states.every(({ state }) => state === "online");
    }
    return world;
  }

  async worker(name: string, engine: string, runs_on: readonly string[]): Promise<string> {
    return (await this.service.call("POST /api/workers", { name, engine, runs_on })).id;
  }

  /** Runs one task to its end. Returns its id with its start and end. */
  async run(worker_id: string): Promise<{ id: string; sentAt: number; endedAt: number }> {
    const sentAt = readWallClock();
    const body = { message_id: "bench", worker_id, instruction: "ok", type: "immediate" };
    const { id } = await this.service.call("POST /api/tasks", body);
    await this.service.call(`GET /api/tasks/${id}/wait?timeout_ms=60000`);
    return { id, sentAt, endedAt: readWallClock() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const runner of this.#runners) await runner.end("SIGKILL");
    await this.service[Symbol.asyncDispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

function readWallClock(): number {
  return performance.timeOrigin + performance.now();
}

async function measurePickups(): Promise<Row> {
  const ledgerIn = (folder: string) => join(folder, "ledger");
  await using world = await World.open(1, (folder) => ({ stamp: createStampEngine(ledgerIn(folder)) }));
  const here = { worker: await world.worker("here", "stamp", []), sent: new Map<string, number>() };
  const away = { worker: await world.worker("away", "stamp", RUNS_ON), sent: new Map<string, number>() };
  for (let n = -WARM; n < PICKUPS; n++) {
    // The second of a pair finds warm caches.
    for (const side of n % 2 === 0 ? [here, away] : [away, here]) {
      const { id, sentAt } = await world.run(side.worker);
      if (n >= 0) side.sent.set(id, sentAt);
    }
  }
  const startedAt = await readStamps(ledgerIn(world.folder));
  const [local = NaN, remote = NaN] = [here, away].map(({ sent }) =>
    computeMedian([...sent].map(([id, at]) => (startedAt.get(id) ?? NaN) - at))
  );
  return {
    what: "task created -> program started on a runner (p50)",
    value: remote,
    unit: "ms",
    bare: local,
    beside: "on the service's machine",
    says: `${(remote - local).toFixed(1)} ms more`,
    goal: "at most 5 ms more",
    met: remote - local <= 5,
  };
}

async function measureThroughput(): Promise<Row[]> {
  await using world = await World.open(RUNNERS, () => ({}));
  const local = await runManyTasks(world, "here", []);
  const remote = await runManyTasks(world, "away", RUNS_ON);
  return [{
    what: `${TASKS} echo tasks, ${WORKERS} workers, ${RUNNERS} runners, end to end`,
    value: remote.perSecond,
    unit: "/s",
    bare: local.perSecond,
    beside: "by the service itself",
    says: `${(100 * remote.perSecond / local.perSecond).toFixed(0)} % of it`,
  }, {
    what: "CPU of the service for each of them",
    value: remote.cpuMs,
    unit: "ms",
    bare: local.cpuMs,
    beside: "by the service itself",
    says: `${(remote.cpuMs / local.cpuMs).toFixed(1)}x`,
  }];
}

/** Returns ended tasks per second and the service's CPU time for each. */
async function runManyTasks(
  world: World,
  name: string,
  runsOn: readonly string[],
): Promise<{ perSecond: number; cpuMs: number }> {
  const { service } = world;
  const workers: string[] = [];
  for (let n = 0; n < WORKERS; n++) workers.push(await world.worker(`${name} ${n}`, "echo", runsOn));
  // Afterwards every worker has its home.
  for (const worker of workers) await world.run(worker);
  const before = await countCompleted(service);
  const cpu = await service.cpuMs();
  const started = performance.now();
  for (let at = 0; at < TASKS; at += BATCH) {
    const tasks = Array.from({ length: BATCH }, (_, n) => ({
      message_id: "bench",
      worker_id: workers[(at + n) % WORKERS],
      instruction: "x",
      type: "immediate",
    }));
    await service.call("POST /api/tasks/batch", { tasks });
  }
  while (await countCompleted(service) < before + TASKS) await pause(LOOK_EVERY_MS);
  const perSecond = TASKS / ((performance.now() - started) / 1_000);
  return { perSecond, cpuMs: (await service.cpuMs() - cpu) / TASKS };
}

async function countCompleted(service: BenchService): Promise<number> {
  const { executions } = await service.call("GET /api/system/overview");
  return executions.completed ?? 0;
}

/** Measures the time from the start of a program with a large log until its run and log are stored. */
async function measureLogs(): Promise<Row> {
  const ledgerIn = (folder: string) => join(folder, "ledger");
  const bytes = new TextEncoder().encode(`${"0123456789".repeat(102)}012\n`.repeat(LOG_BYTES / 1024));
  await using world = await World.open(1, (folder) => {
    Deno.writeFileSync(join(folder, "output"), bytes);
    return { prints: createStampEngine(ledgerIn(folder), `; cat ${join(folder, "output")}`) };
  });
  const worker = await world.worker("away", "prints", RUNS_ON);
  const plain: number[] = [];
  const runs: { id: string; endedAt: number }[] = [];
  for (let n = 0; n < LOGS; n++) {
    plain.push(await appendPlain(join(world.folder, `plain ${n}`), bytes));
    runs.push(await world.run(worker));
  }
  const [last] = runs.slice(-1);
  const { execution_id } = await world.service.call(`GET /api/tasks/${last?.id ?? ""}`);
  const stored = await world.service.text(`/api/executions/${execution_id}/logs`);
  if (stored.length < LOG_BYTES) throw new Error(`the log has ${stored.length} bytes only`);
  const startedAt = await readStamps(ledgerIn(world.folder));
  const mbs = (ms: number) => LOG_BYTES / 1e3 / ms;
  const rate = mbs(computeMedian(runs.map(({ id, endedAt }) => endedAt - (startedAt.get(id) ?? NaN))));
  const disk = mbs(computeMedian(plain));
  return {
    what: "a log of 16 MiB, from the start of its program to its stored end",
    value: rate,
    unit: "MB/s",
    bare: disk,
    beside: "append and fsync of the same",
    says: `${(100 * rate / disk).toFixed(0)} % of it`,
    goal: "at least 50 MB/s, or the disk's pace",
    met: rate >= Math.min(50, disk),
  };
}

async function appendPlain(path: string, bytes: Uint8Array): Promise<number> {
  const started = performance.now();
  using file = await Deno.open(path, { append: true, create: true });
  for (let at = 0; at < bytes.length; at += LOG_PART_BYTES) {
    await file.write(bytes.subarray(at, at + LOG_PART_BYTES));
  }
  await file.syncData();
  return performance.now() - started;
}
