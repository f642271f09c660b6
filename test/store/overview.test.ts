import { describe, expect, it } from "vitest";
import { createId } from "../../src/base/id.ts";
import { Database, type Statement } from "../../src/store/db/database.ts";
import { finishExecution, insertExecution } from "../../src/store/work/execution.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { findWorkerNames, listUsage, QUARTER_MS } from "../../src/store/events/overview.ts";
import { readCounters } from "../../src/store/db/counters.ts";
import { expectCounters } from "../harness/model/counters.ts";

const NOTHING = { input_tokens: null, output_tokens: null, cost_usd: null };

describe("usage and counters (interface 4.2, system overview)", () => {
  it("sum reported values, keep null without any, and count each end of a run once", async () => {
    await using db = await openDatabase();
    const at = 1_000 * QUARTER_MS;
    await run(db, "a", at, { input_tokens: 10, output_tokens: null, cost_usd: 0.25 });
    await run(db, "a", at + 1, NOTHING);
    await run(db, "a", at + QUARTER_MS, { input_tokens: 5, output_tokens: 7, cost_usd: 0.5 });
    await run(db, "b", at, NOTHING, "timeout");
    expect(await listUsage(db, at)).toEqual([
      { worker_id: "a", executions: 3, failed: 0, input_tokens: 15, output_tokens: 7, cost_usd: 0.75 },
      { worker_id: "b", executions: 1, failed: 1, ...NOTHING },
    ]);
    const [later] = await listUsage(db, at + QUARTER_MS);
    expect(later).toMatchObject({ worker_id: "a", executions: 1, input_tokens: 5 });
    const names = [...await findWorkerNames(db, ["b", "a", "c"])];
    expect(names).toEqual([["b", "worker b"], ["a", "worker a"], ["c", ""]]);
    expect((await readCounters(db)).ended).toEqual({ completed: 3, timeout: 1 });
    await expectCounters(db);
  });

  it("count nothing for a batch that was rolled back, whose guard stays lost (architecture, sentence 3)", async () => {
    await using db = await openDatabase();
    const id = await run(db, "a", 0, NOTHING);
    const before = await readCounters(db);
    const again = finishExecution(id, end("completed", NOTHING), 5);
    expect((await db.write(again)).won).toBe(false);
    expect(await readCounters(db)).toEqual(before);
  });

  it("read indexes and counters, and never scan a growing table", async () => {
    await using db = await openDatabase();
    const plans: string[] = [];
    const real = db.read.bind(db);
    db.read = async (sql: string, args = []) => {
      const plan = await real<{ detail: string }>(`explain query plan ${sql}`, args);
      plans.push(...plan.map((step) => step.detail));
      return [];
    };
    db.first = async (sql, args) => (await db.read(sql, args), null);
    const { countWorkers, findRecentExecutions } = await import("../../src/store/events/overview.ts");
    const { listUnplaced, readBacklog } = await import("../../src/store/events/health.ts");
    const { listBeeRuns } = await import("../../src/store/chat/bee_run.ts");
    await countWorkers(db);
    await findRecentExecutions(db, null, 10);
    await findRecentExecutions(db, "local:x", 10);
    await listUsage(db, 0);
    await findWorkerNames(db, ["a"]);
    await readBacklog(db, 0);
    await listUnplaced(db, 5);
    await listBeeRuns(db, null, { limit: 10 });
    await listBeeRuns(db, "local:x", { limit: 10 });
    const scans = plans.filter((detail) =>
      /^SCAN (task|execution|inbound_message|outbound_message|bee_run|usage)\b/.test(detail)
    );
    // A query for the newest rows follows an index and stops at its limit.
    expect(scans.filter((detail) => !/USING (COVERING )?INDEX/.test(detail))).toEqual([]);
  });
});

async function openDatabase(): Promise<Database> {
  const db = await Database.open(":memory:");
  await migrate(db, 0);
  return db;
}

type Usage = { input_tokens: number | null; output_tokens: number | null; cost_usd: number | null };

async function run(
  db: Database,
  worker: string,
  at: number,
  usage: Usage,
  failure: "" | "timeout" = "",
): Promise<string> {
  const id = createId();
  const statements: Statement[] = [
    insertExecution({
      execution_id: id,
      worker_id: worker,
      worker_name: `worker ${worker}`,
      task_id: createId(),
      message_id: "m",
      session_key: "s",
      session_id: "s",
      engine: "echo",
      fallback_from: "",
      instruction: "i",
      attempt: 1,
      run_id: "r",
      created_at: at,
    }),
    ...finishExecution(id, end(failure === "" ? "completed" : "failed", usage, failure), at),
  ];
  expect((await db.write(statements)).won).toBe(true);
  return id;
}

function end(status: "completed" | "failed", usage: Usage, failure: "" | "timeout" = "") {
  return { status, session_id: "s", result: "", error: "", failure, exit_code: null, usage };
}
