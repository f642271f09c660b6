import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { createId } from "../../../src/base/id.ts";
import { Database } from "../../../src/store/db/database.ts";
import { PASSWORD, PASSWORD_HASH } from "../../harness/service/app.ts";
import { openClient, waitUntilQuiet } from "../../harness/service/client.ts";
import { insertRows } from "../../harness/model/counters.ts";
import { createTempDir, startServer } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";

vi.setConfig({ testTimeout: 180_000 });

const ENV = { SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH };
const STREAMS = 200;
const OLD = 100_000;
const OPEN = 500;

it(`the service ends ${STREAMS} open streams, each with its last event, without a delay [SHD-4]`, async () => {
  await using folder = await createTempDir();
  await using server = await startServer({ dataDir: folder.path, env: ENV });
  const api = await openClient(server.url, PASSWORD);
  const { id } = await api.call("POST /api/local/sessions");
  const streams = await Promise.all(Array.from({ length: STREAMS }, () => api.stream(id)));
  const { code, ms } = await server.end("SIGTERM");
  expect(code).toBe(0);
  expect(ms).toBeLessThan(5_000);
  // Events may still be on their way to a busy reader.
  await waitUntil("each has its last event", () => streams.every((one) => one.named("end").length > 0));
  for (const stream of streams) await stream.close();
  expect(streams.filter((one) => one.named("end")[0]?.data.reason !== "shutdown")).toEqual([]);
});

it(`a start with ${OLD} old rows and ${OPEN} open tasks is ready within three seconds [SHD-7]`, async () => {
  await using folder = await createTempDir();
  const dataDir = folder.path;
  const first = await startServer({ dataDir, env: ENV });
  const { id: worker } = await (await openClient(first.url, PASSWORD)).call("POST /api/workers", {
    name: "Ada",
  });
  await first.end("SIGTERM");
  await fill(dataDir, worker);
  const started = performance.now();
  await using server = await startServer({ dataDir, env: ENV });
  expect(performance.now() - started).toBeLessThan(3_000);
  const api = await openClient(server.url, PASSWORD);
  await waitUntilQuiet(api);
  expect((await api.call("GET /api/system/overview")).tasks).toMatchObject({ completed: OLD + OPEN });
});

async function fill(dataDir: string, worker: string): Promise<void> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const now = Date.now();
  await db.write([
    {
      sql: `with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < ?)
        insert into task (id, message_id, worker_id, session_key, instruction, type, status, created_by, created_at, updated_at)
        select printf('00000000-0000-7000-8000-%012d', i), 'm', ?, 'cli:m', 'x', 'immediate', 'completed', 'bee', ?, ? from n`,
      args: [OLD, worker, now, now],
    },
    {
      sql: `with recursive n (i) as (select 0 union all select i + 1 from n where i + 1 < ?)
        insert into execution (id, worker_id, worker_name, task_id, message_id, session_key, engine, instruction, status,
          attempt, run_id, created_at, completed_at)
        select printf('00000000-0000-7000-8000-%012d', i), ?, 'Ada', printf('00000000-0000-7000-8000-%012d', i), 'm', 'cli:m',
          'echo', 'x', 'completed', 1, 'r', ?, ? from n`,
      args: [OLD, worker, now, now],
    },
  ]);
  for (let i = 0; i < OPEN; i++) {
    await db.write(insertRows("task", [{
      id: createId(),
      message_id: "m",
      worker_id: worker,
      session_key: "cli:m",
      instruction: "x",
      type: "immediate",
      status: "pending",
      due_at: now,
      created_by: "bee",
      created_at: now,
      updated_at: now,
    }]));
  }
  await db.close();
}
