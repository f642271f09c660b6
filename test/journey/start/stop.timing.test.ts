import { expect, it, vi } from "vitest";
import { createId } from "../../../src/base/id.ts";
import { Database } from "../../../src/store/db/database.ts";
import { waitUntilQuiet } from "../../harness/service/client.ts";
import { insertRows } from "../../harness/model/counters.ts";
import { World } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";

vi.setConfig({ testTimeout: 180_000 });

const ENV = { SVC_ENGINES__DEFAULT: "echo" };
const STREAMS = 200;
const OLD = 100_000;
const OPEN = 500;

it(`the service ends ${STREAMS} open streams, each with its last event, without a delay [SHD-4]`, async () => {
  await using world = await World.serve();
  const { server, api } = world;
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
  await using world = await World.serve({ env: ENV });
  const { id: worker } = await world.api.call("POST /api/workers", { name: "Ada" });
  await world.server.end("SIGTERM");
  await fill(world.database, worker);
  const started = performance.now();
  const { api } = await world.start();
  expect(performance.now() - started).toBeLessThan(3_000);
  await waitUntilQuiet(api);
  expect((await api.call("GET /api/system/overview")).tasks).toMatchObject({ completed: OLD + OPEN });
});

async function fill(path: string, worker: string): Promise<void> {
  await using db = await Database.open(`file:${path}`);
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
}
