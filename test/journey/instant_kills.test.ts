import { join } from "node:path";
import { expect, it } from "vitest";
import type { FaultPoint } from "../../src/base/fault_point.ts";
import { Database } from "../../src/store/database.ts";
import { PASSWORD, PASSWORD_HASH } from "../harness/app.ts";
import { client, quiet } from "../harness/client.ts";
import { startServer, tempDir } from "../harness/process.ts";
import { checkAtAnyMoment } from "../torture/checker.ts";

const ENV = { SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH };
const TASKS = 60;
const POINTS: FaultPoint[] = ["outcome.pre-commit", "claim.post", "outcome.post-commit"];

it(
  "killed before and after the commit of runs inside the service: each task runs once, with its log (reliability DUR-3, DUR-9)",
  async () => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir, { mode: 0o700 });
    await prepare(dataDir);
    for (const point of POINTS) {
      // There is work, so that it begins at once and may die before it is ready.
      const env = { ...ENV, SVC_FAULT: `${point}:2:kill` };
      const said = await startServer({ dataDir, env }).then(
        async (server) => await server.child.status.then(() => server.stderr),
        (error: Error) => error.message,
      );
      expect(said).toContain(`SVC_FAULT fired: ${point}:2:kill`);
      expect(await checkAtAnyMoment(dataDir)).toEqual([]);
    }
    await using server = await startServer({ dataDir, env: ENV });
    await quiet(await client(server.url, PASSWORD));
    await server.end("SIGTERM");
    const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
    const rows = await db.read(
      `select task.status, run_count, (select count(*) from execution where task_id = task.id) as runs,
        execution.status as run_status, execution.result = task.instruction as answered,
        execution_log.text like '%[completed]%' as logged
      from task
      left join execution on execution.id = task.execution_id
      left join execution_log on execution_log.execution_id = execution.id`,
    );
    await db.close();
    expect(rows).toHaveLength(TASKS);
    for (const row of rows) {
      expect(row).toEqual({
        ...{ status: "completed", run_count: 1, runs: 1, run_status: "completed" },
        ...{ answered: 1, logged: 1 },
      });
    }
  },
  300_000,
);

// Tasks of five workers who wait for the next start.
async function prepare(dataDir: string): Promise<void> {
  await using server = await startServer({ dataDir, env: ENV });
  const api = await client(server.url, PASSWORD);
  const workers: string[] = [];
  for (let i = 0; i < 5; i++) {
    workers.push((await api.call("POST /api/workers", { name: `w${i}`, paused: true })).id);
  }
  const tasks = Array.from({ length: TASKS }, (_, at) => ({
    message_id: "kills",
    worker_id: workers[at % workers.length],
    instruction: `task ${at}`,
    type: "immediate",
  }));
  await api.call("POST /api/tasks/batch", { tasks });
  await server.end("SIGTERM");
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  await db.write([{ sql: "update worker set paused = 0", args: [] }]);
  await db.close();
}
