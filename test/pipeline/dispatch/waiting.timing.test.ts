import { expect, it } from "vitest";
import { NextTasks } from "../../../src/pipeline/dispatch/next_tasks.ts";
import { Database } from "../../../src/store/db/database.ts";
import { migrate } from "../../../src/store/db/migrate.ts";
import { findNextDueAt } from "../../../src/store/work/task_queue.ts";

const ROUNDS = 200;

/** Returns the median time in ms of what the dispatcher reads in a round. */
async function measureRound(db: Database): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now();
    const { tasks } = await new NextTasks(db).read(2_000);
    await findNextDueAt(db, 2_000);
    times.push(performance.now() - started);
    expect(tasks.map(({ id }) => id)).toEqual(["ready"]);
  }
  return times.sort((a, b) => a - b)[ROUNDS / 2] ?? Infinity;
}

function insertTask(id: string, worker: string, openParents: number) {
  return {
    sql:
      `insert into task (id, message_id, worker_id, session_key, instruction, type, status, due_at, open_parents,
      created_by, created_at, updated_at) values (?, 'm', ?, 'cli:x', 'x', 'immediate', 'pending', 1000, ?, 'x', 1, 1)`,
    args: [id, worker, openParents],
  };
}

it("1,000 tasks that wait for others, each of another worker, cost the dispatcher nothing measurable (contract 25)", async () => {
  await using db = await Database.open(":memory:");
  await migrate(db, 1);
  const workers = ["w", ...Array.from({ length: 1_000 }, (_, n) => `w${n}`)];
  await db.write(workers.map((id) => ({
    sql: `insert into worker (id, name, name_key, work_dir, paused, created_at, updated_at)
      values (?, ?, ?, '/tmp', 0, 1, 1)`,
    args: [id, id, id],
  })));
  await db.write([insertTask("ready", "w", 0)]);
  const before = await measureRound(db);
  await db.write(workers.slice(1).map((id) => insertTask(`waits ${id}`, id, 1)));
  const after = await measureRound(db);
  // Reading 250 workers takes several ms.
  expect(after, `${before} ms without them`).toBeLessThan(before * 1.5 + 0.3);
});
