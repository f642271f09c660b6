import { join } from "node:path";
import { Database } from "../src/store/database.ts";
import { percentile, type Row, timed } from "./measure.ts";
import { BenchService } from "./service.ts";

const EXECUTIONS = 1_000_000;
const WORKERS = 100;
const GOAL_MS = 20;

/** What the overview, the doctor and the metrics cost when a million executions are stored, next to an empty service. */
export async function benchSystem(): Promise<Row[]> {
  await using service = await BenchService.start();
  const before = await measure(service);
  await service.restartWith(fill);
  const after = await measure(service);
  return Object.entries(after).map(([what, value]) => ({
    what: `${what} at a million executions (p99)`,
    value,
    unit: "ms",
    bare: before[what] ?? NaN,
    beside: "with none",
    says: "",
    goal: what === "system overview" ? `under ${GOAL_MS} ms` : "",
    met: what === "system overview" ? value < GOAL_MS : null,
  }));
}

async function measure(service: BenchService): Promise<Record<string, number>> {
  const p99 = async (path: string) =>
    percentile(await timed(200, 20, async () => void await service.call(path)), 99);
  return {
    "system overview": await p99("GET /api/system/overview"),
    "system executions": await p99("GET /api/system/executions"),
  };
}

/** A million ended runs over the last ninety days, in steps that fit into memory. */
async function fill(dataDir: string): Promise<void> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const now = Date.now();
  for (let from = 0; from < EXECUTIONS; from += 50_000) {
    await db.write([{
      sql: `with recursive n (i) as (select ? union all select i + 1 from n where i + 1 < ?)
        insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, session_id, engine,
          instruction, status, attempt, run_id, created_at)
        select printf('00000000-0000-7000-8000-%012d', i), printf('00000000-0000-7000-8000-%012d', i % ?), 'w',
          printf('00000000-0000-7000-8000-%012d', i), 'm', 's', 's', 'echo', 'do this and that', 'running', 1, 'r',
          ? - 7776000000 + i * 7776
        from n`,
      args: [from, from + 50_000, WORKERS, now],
    }, {
      sql: `update execution
        set status = 'completed', started_at = created_at, completed_at = created_at, input_tokens = 10, output_tokens = 5
        where status = 'running'`,
      args: [],
    }]);
  }
  await db.close();
}
