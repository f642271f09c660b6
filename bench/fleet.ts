import { join } from "node:path";
import { Database } from "../src/store/db/database.ts";
import { computeMedian, computePercentile, measureRuns, pause, type Row } from "./measure.ts";
import { BenchService } from "./service.ts";

const RUNNERS = 1_000;
const WORKERS = 100_000;
const IDLE_SECONDS = 60;
const REQUESTS = 50;
const WAIT_MS = 25_000;

/** Measures a service with a thousand waiting runners, and one with 100,000 workers, next to an empty service. */
export async function benchFleet(): Promise<Row[]> {
  await using empty = await open();
  const bare = await measureWorkers(empty);
  const idle = await measureIdle(empty);
  const runners = await measureRunners();
  const workers = await measureFullService();
  return [
    { ...describe(`CPU with ${RUNNERS} waiting runners`, "%"), value: runners.percent, bare: idle.percent },
    { ...describe(`memory with ${RUNNERS} waiting runners`, "MB"), value: runners.mb, bare: idle.mb },
    {
      ...describe(`a task of one of ${WORKERS} workers, created -> done (p50)`, "ms"),
      ...{ value: computeMedian(workers.tasks), bare: computeMedian(bare.tasks) },
    },
    {
      ...describe(`first page of ${WORKERS} workers (p95)`, "ms"),
      ...{ value: computePercentile(workers.pages, 95), bare: computePercentile(bare.pages, 95) },
    },
    {
      ...describe(`overview with ${WORKERS} workers (p95)`, "ms"),
      ...{ value: computePercentile(workers.overviews, 95), bare: computePercentile(bare.overviews, 95) },
    },
    { ...describe(`memory with ${WORKERS} workers`, "MB"), value: workers.mb, bare: idle.mb },
    {
      ...describe(`CPU with ${WORKERS} workers without work`, "%"),
      value: workers.percent,
      bare: idle.percent,
    },
  ];
}

function describe(what: string, unit: string): Pick<Row, "what" | "unit" | "beside"> {
  return { what, unit, beside: "empty" };
}

function open(): Promise<BenchService> {
  const connections = 2 * RUNNERS;
  return BenchService.start({}, {
    engines: { default: "echo" },
    server: { max_connections: connections, max_connections_per_address: connections },
  });
}

async function measureIdle(service: BenchService): Promise<{ percent: number; mb: number }> {
  const before = await service.cpuMs();
  await pause(IDLE_SECONDS * 1_000);
  const percent = (await service.cpuMs() - before) / (IDLE_SECONDS * 10);
  return { percent, mb: await service.memoryMb() };
}

async function measureRunners(): Promise<{ percent: number; mb: number }> {
  await using service = await open();
  const stopping = new AbortController();
  const waiting: Promise<void>[] = [];
  for (let n = 0; n < RUNNERS; n++) {
    const { token } = await service.call("POST /api/runners", { name: `r${n}`, labels: ["bench"] });
    waiting.push(waitForRuns(service.url, token, stopping.signal));
  }
  await pause(2_000);
  const idle = await measureIdle(service);
  stopping.abort();
  await Promise.all(waiting);
  return idle;
}

/** Claims as an idle runner does. */
async function waitForRuns(url: string, token: string, signal: AbortSignal): Promise<void> {
  const process = crypto.randomUUID();
  const place = crypto.randomUUID();
  let epoch = 0;
  while (!signal.aborted) {
    const claim = {
      ...{ request_id: crypto.randomUUID(), process, place, epoch, protocol: 1, version: "bench" },
      ...{ work_root: "/bench", max_runs: 1, wait_ms: WAIT_MS, engines: [{ name: "echo", agent: false }] },
    };
    try {
      const response = await fetch(`${url}/api/runners/claim`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify(claim),
        signal,
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.detail);
      epoch = answer.epoch;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

interface WorkerTimes {
  tasks: number[];
  pages: number[];
  overviews: number[];
}

async function measureFullService(): Promise<WorkerTimes & { percent: number; mb: number }> {
  await using service = await open();
  await service.call("POST /api/workers", { name: "w" });
  await service.restartWith(fill);
  return { ...await measureWorkers(service), ...await measureIdle(service) };
}

/** Stores copies of the only worker. */
async function fill(dataDir: string): Promise<void> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const columns = await db.readValue<string>(
    "select group_concat(name, ', ') from pragma_table_info('worker') where name not in ('id', 'name')",
  );
  await db.write([{
    sql: `with recursive one (n) as (select 1 union all select n + 1 from one where n < ?)
      insert into worker (id, name, ${columns})
      select printf('00000000-0000-7000-8000-%012x', n), 'w' || n, ${columns} from one, worker`,
    args: [WORKERS],
  }]);
  await db.close();
}

async function measureWorkers(service: BenchService): Promise<WorkerTimes> {
  const { id } = await service.call("POST /api/workers", { name: "measured" });
  const tasks = await measureRuns(REQUESTS, 5, async () => {
    const body = { message_id: "bench", worker_id: id, instruction: "x", type: "immediate" };
    const task = await service.call("POST /api/tasks", body);
    await service.call(`GET /api/tasks/${task.id}/wait`);
  });
  const pages = await measureRuns(REQUESTS, 5, () => service.call("GET /api/workers"));
  const overviews = await measureRuns(REQUESTS, 5, () => service.call("GET /api/system/overview"));
  return { tasks, pages, overviews };
}
