import { createId } from "../src/base/id.ts";
import { Database } from "../src/store/db/database.ts";
import { computeMedian, computePercentile, pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const PICKUPS = 200;
const DURABLE_TASKS = 10_000;
const DURABLE_WORKERS = 50;
const BATCH = 500;
const SCHEDULES = 100_000;
const BUDGETS = 1_000;
const IDLE_SECONDS = 10;

/** Measures tasks: time to start, throughput from request to record, and the cost of waiting schedules. */
export async function benchTasks(): Promise<Row[]> {
  const empty = await measurePickups(0);
  const [full, bounded] = await measureSideBySide();
  const durable = await measureThroughput(sendOne);
  const batched = await measureThroughput(sendBatches);
  const ratio = full.p50 / empty.p50;
  const budgets = bounded.p50 / full.p50;
  return [
    { what: "task created -> program started (p50)", value: empty.p50, unit: "ms", max: 4 },
    { what: "task created -> program started (p99)", value: empty.p99, unit: "ms", max: 15 },
    {
      what: `the same with ${SCHEDULES} schedules stored (p50)`,
      value: full.p50,
      unit: "ms",
      bare: empty.p50,
      beside: "with none",
      says: `${ratio.toFixed(2)}x`,
      goal: "at most 1.2x",
      met: ratio <= 1.2,
    },
    {
      what: `the same with ${BUDGETS} budgets (p50)`,
      value: bounded.p50,
      unit: "ms",
      bare: full.p50,
      beside: "without",
      says: `${budgets.toFixed(2)}x`,
      goal: "at most 1.1x",
      met: budgets <= 1.1,
    },
    {
      what: `idle CPU with ${SCHEDULES} schedules, none due`,
      value: full.idlePercent,
      unit: "%",
      bare: empty.idlePercent,
      beside: "with none",
      max: 1,
    },
    {
      what: `${DURABLE_TASKS} echo tasks, ${DURABLE_WORKERS} workers, end to end`,
      value: durable,
      unit: "/s",
      min: 500,
    },
    { what: `the same in batches of ${BATCH}`, value: batched, unit: "/s", min: 500 },
  ];
}

interface PickupTimes {
  p50: number;
  p99: number;
  idlePercent: number;
}

async function measurePickups(schedules: number): Promise<PickupTimes> {
  await using bench = await Pickups.open(schedules, 0);
  for (let i = 0; i < PICKUPS; i++) await bench.one();
  return await bench.measured();
}

/** Alternates between the same schedules without and with budgets, so that other load affects both alike. */
async function measureSideBySide(): Promise<[PickupTimes, PickupTimes]> {
  await using full = await Pickups.open(SCHEDULES, 0);
  await using bounded = await Pickups.open(SCHEDULES, BUDGETS);
  for (let i = 0; i < PICKUPS; i++) {
    // The second measurement of a pair finds warm caches.
    for (const bench of i % 2 === 0 ? [full, bounded] : [bounded, full]) await bench.one();
  }
  return [await full.measured(), await bounded.measured()];
}

/** Measures each task's wait from the request to the start of its program, by the program's own clock. */
class Pickups implements AsyncDisposable {
  readonly #service: BenchService;
  readonly #worker: string;
  readonly #ledger: string;
  readonly #sent = new Map<string, number>();

  private constructor(service: BenchService, worker: string, ledger: string) {
    this.#service = service;
    this.#worker = worker;
    this.#ledger = ledger;
  }

  static async open(schedules: number, budgets: number): Promise<Pickups> {
    const ledger = await Deno.makeTempFile();
    const service = await BenchService.start({
      SVC_ENGINES__STAMP__KIND: "command",
      // bash can read the time without starting another program.
      SVC_ENGINES__STAMP__COMMAND: "bash",
      SVC_ENGINES__STAMP__ARGS: `-c,echo $SVC_TASK_ID $EPOCHREALTIME >> ${ledger}`,
    });
    const worker = await service.call("POST /api/workers", { name: "bench", engine: "stamp" });
    if (schedules > 0) await storeSchedules(service, worker.id, schedules);
    for (let i = 0; i < budgets; i++) await service.call("POST /api/budgets", buildBudget(i, worker.id));
    return new Pickups(service, worker.id, ledger);
  }

  async one(): Promise<void> {
    const at = performance.timeOrigin + performance.now();
    const body = { message_id: "bench", worker_id: this.#worker, instruction: "ok", type: "immediate" };
    const { id } = await this.#service.call("POST /api/tasks", body);
    this.#sent.set(id, at);
    await this.#service.call(`GET /api/tasks/${id}/wait?timeout_ms=10000`);
  }

  async measured(): Promise<PickupTimes> {
    const waits: number[] = [];
    for (const line of (await Deno.readTextFile(this.#ledger)).trim().split("\n")) {
      const [task = "", seconds = "0"] = line.split(" ");
      const at = this.#sent.get(task);
      if (at !== undefined) waits.push(Number(seconds) * 1e3 - at);
    }
    const idlePercent = await measureIdleCpu(this.#service);
    return { p50: computeMedian(waits), p99: computePercentile(waits, 99), idlePercent };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service[Symbol.asyncDispose]();
    await Deno.remove(this.#ledger);
  }
}

/** Builds one of many budgets. A few apply to the measured runs, most to other conversations. */
function buildBudget(i: number, workerId: string): Record<string, unknown> {
  const targets = ["global", `worker:${workerId}`, "engine:stamp", "session:cli:bench"];
  const units = ["runs", "tokens", "minutes"];
  return {
    name: `budget ${i}`,
    target: i < 12 ? targets[i % 4] : `session:cli:other-${i}`,
    unit: units[i % 3],
    limit: 1_000_000,
    period: i % 2 === 0 ? "24h" : "month",
  };
}

/** Inserts schedules that are far from due into the database file while the server is stopped. */
async function storeSchedules(service: BenchService, workerId: string, count: number): Promise<void> {
  await service.restartWith(async (dataDir) => {
    const db = await Database.open(`file:${dataDir}/svc.db`);
    const next = Date.now() + 300 * 86_400_000;
    for (let at = 0; at < count; at += 500) {
      await db.write(Array.from({ length: 500 }, () => ({
        sql:
          `insert into task (id, message_id, worker_id, session_key, instruction, type, cron, status, next_run_at,
            created_by, created_at, updated_at)
          values (?, 'bench', ?, 'cli:bench', 'x', 'scheduled', '0 0 1 1 *', 'scheduled', ?, 'bench', 1, 1)`,
        args: [createId(), workerId, next],
      })));
    }
    await db.close();
  });
}

/** Returns the CPU of the idle server, in percent of one core. */
async function measureIdleCpu(service: BenchService): Promise<number> {
  await pause(1_000);
  const before = await service.cpuMs();
  await pause(IDLE_SECONDS * 1_000);
  return (await service.cpuMs() - before) / (IDLE_SECONDS * 10);
}

/** Sends tasks in order. Returns the id of the last one. */
type Send = (service: BenchService, tasks: readonly object[]) => Promise<string>;

/** Returns tasks per second, from the first request to the last record. */
async function measureThroughput(send: Send): Promise<number> {
  await using service = await BenchService.start({
    SVC_LIMITS__MAX_CONCURRENT_RUNS: String(DURABLE_WORKERS),
  });
  const workers: string[] = [];
  for (let i = 0; i < DURABLE_WORKERS; i++) {
    workers.push((await service.call("POST /api/workers", { name: `w${i}` })).id);
  }
  const tasks = Array.from({ length: DURABLE_TASKS }, (_, at) => ({
    message_id: "bench",
    worker_id: workers[at % DURABLE_WORKERS] ?? "",
    instruction: "x",
    type: "immediate",
  }));
  const started = performance.now();
  const last = await send(service, tasks);
  // Repeated counting would add load.
  while ((await service.call(`GET /api/tasks/${last}/wait?timeout_ms=10000`)).status !== "completed");
  while (await countTasksLeft(service) > 0) await pause(50);
  return DURABLE_TASKS / ((performance.now() - started) / 1_000);
}

async function sendOne(service: BenchService, tasks: readonly object[]): Promise<string> {
  let sent = 0;
  let last = "";
  const sender = async () => {
    while (sent < tasks.length) ({ id: last } = await service.call("POST /api/tasks", tasks[sent++]));
  };
  await Promise.all(Array.from({ length: 32 }, sender));
  return last;
}

async function sendBatches(service: BenchService, tasks: readonly object[]): Promise<string> {
  let last = "";
  for (let at = 0; at < tasks.length; at += BATCH) {
    const { tasks: made } = await service.call("POST /api/tasks/batch", {
      tasks: tasks.slice(at, at + BATCH),
    });
    last = made.at(-1).id;
  }
  return last;
}

/** Returns whether tasks are left: the last page of completed executions is not full. */
async function countTasksLeft(service: BenchService): Promise<number> {
  const pages = DURABLE_TASKS / 100;
  const last = await service.call(`GET /api/executions?status=completed&page_size=100&page=${pages}`);
  return last.length === 100 ? 0 : 1;
}
