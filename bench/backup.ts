import { join } from "node:path";
import { Database } from "../src/store/db/database.ts";
import { computePercentile, formatShort, pause, type Row } from "./measure.ts";
import type { BenchService } from "./service.ts";
import { TurnsService } from "./turns.ts";

const GIGABYTES = Number(Deno.env.get("SVC_BENCH_GB") ?? 5);
const RESULT_BYTES = 100_000;
const WRITES_EVERY_MS = 50;
const GOAL_MS = 50;

/** Measures the longest blocking of the service's event loop during a backup with 20 writes a second, compared with the writes alone. */
export async function benchBackup(): Promise<Row[]> {
  await using watched = await TurnsService.start();
  const { service } = watched;
  await service.restartWith(fill);
  const worker = await service.call("POST /api/workers", { name: "w", paused: true });
  const write = () =>
    service.call("POST /api/tasks", {
      ...{ message_id: "bench", worker_id: worker.id, instruction: "x", type: "immediate" },
    });
  await measureWrites(write, () => pause(1_000));
  const alone = await watched.longest(() => measureWrites(write, () => pause(10_000)));
  let writes: number[] = [];
  let bytes = 0;
  const started = performance.now();
  const turn = await watched.longest(async () => {
    writes = await measureWrites(write, async () => void (bytes = await backUp(service)));
  });
  const seconds = (performance.now() - started) / 1_000;
  return [{
    what: `longest turn while ${formatShort(bytes / 1e9)} GB are backed up under 20 writes a second`,
    value: turn.wallMs,
    unit: "ms",
    bare: alone.wallMs,
    beside: "the writes alone",
    says: `${formatShort(turn.processorMs)} ms of processor; a write p50 ${
      formatShort(computePercentile(writes, 50))
    }, p99 ${formatShort(computePercentile(writes, 99))} ms; ${seconds.toFixed(0)} s in all`,
    max: GOAL_MS,
  }];
}

/** Writes every 50 ms until `work` is done. Returns the ms of each write. */
async function measureWrites(write: () => Promise<unknown>, work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  const open: Promise<unknown>[] = [];
  const timer = setInterval(() => {
    const started = performance.now();
    open.push(write().then(() => times.push(performance.now() - started)));
  }, WRITES_EVERY_MS);
  await work();
  clearInterval(timer);
  await Promise.all(open);
  return times;
}

/** Reads a whole backup. Returns its size in bytes. */
async function backUp(service: BenchService): Promise<number> {
  const response = await fetch(`${service.url}/api/system/backup`, {
    method: "POST",
    headers: { authorization: `Bearer ${service.token}`, "content-type": "application/json" },
    body: "{}",
  });
  if (!response.ok || response.body === null) throw new Error(`backup: ${response.status}`);
  let bytes = 0;
  for await (const chunk of response.body) bytes += chunk.length;
  return bytes;
}

/** Inserts runs with large, incompressible results. */
async function fill(dataDir: string): Promise<void> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const count = Math.ceil(GIGABYTES * 1e9 / RESULT_BYTES);
  for (let from = 0; from < count; from += 500) {
    await db.write([{
      sql: `with recursive n (i) as (select ? union all select i + 1 from n where i + 1 < ?)
        insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, session_id, engine,
          instruction, status, result, attempt, run_id, created_at, started_at, completed_at)
        select printf('00000000-0000-7000-8000-%012d', i), 'w', 'w', printf('00000000-0000-7000-8000-%012d', i), 'm',
          'cli:s', 's', 'echo', 'do it', 'completed', hex(randomblob(?)), 1, 'r', i, i, i
        from n`,
      args: [from, Math.min(count, from + 500), RESULT_BYTES / 2],
    }]);
  }
  await db.close();
}
