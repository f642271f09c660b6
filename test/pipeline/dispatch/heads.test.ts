import { expect, it } from "vitest";
import { NextTasks } from "../../../src/pipeline/dispatch/next_tasks.ts";
import { Database } from "../../../src/store/db/database.ts";
import { migrate } from "../../../src/store/db/migrate.ts";
import { openApp } from "../../harness/service/app.ts";
import { waitUntil } from "../../harness/wait.ts";

const WORKER = `insert into worker (id, name, name_key, work_dir, paused, created_at, updated_at)
  values (?, ?, ?, '/tmp', ?, 1, 1)`;
const TASK =
  `insert into task (id, message_id, worker_id, session_key, instruction, type, status, due_at, held,
  created_by, created_at, updated_at) values (?, 'm', ?, 'cli:x', 'x', 'immediate', 'pending', ?, ?, 'x', 1, 1)`;

/** Inserts workers with two tasks each: the later the worker, the older its tasks. The middle worker is paused. */
async function world(count: number, held: string): Promise<Database> {
  const db = await Database.open(":memory:");
  await migrate(db, 1);
  for (let n = 0; n < count; n++) {
    const id = `w${n}`;
    const due = 1_000 - n;
    await db.write([
      { sql: WORKER, args: [id, id, id, n === Math.floor(count / 2) ? 1 : 0] },
      { sql: TASK, args: [`t${n}-second`, id, due + 500, held] },
      { sql: TASK, args: [`t${n}-first`, id, due, held] },
    ]);
  }
  return db;
}

for (const held of ["", "runner:x"]) {
  it(`NextTasks reads the next tasks of many directories in pages, the oldest first${held === "" ? "" : ", blocked ones too"} (contract 4.5)`, async () => {
    const db = await world(7, held);
    const heads = new NextTasks(db, 3);
    const firsts = ["t0", "t1", "t2", "t4", "t5", "t6"].map((id) => `${id}-first`);
    for (let cycle = 0; cycle < 2; cycle++) {
      const seen = new Set<string>();
      const looks = [];
      for (let more = true; more;) {
        const look = await heads.read(2_000);
        ({ more } = look);
        looks.push(look.tasks.map(({ id }) => id));
        for (const { id } of look.tasks) seen.add(id);
        const dues = look.tasks.map(({ due_at }) => due_at);
        expect(dues).toEqual([...dues].sort((a, b) => a - b));
        // Each read has the oldest unblocked tasks, however many directories have tasks.
        if (held === "") expect(look.tasks[0]?.id).toBe("t6-first");
      }
      expect(looks.length).toBe(3);
      expect([...seen].sort()).toEqual(firsts);
    }
    const whole = await new NextTasks(db, 100).read(2_000);
    expect([whole.more, whole.tasks.map(({ id }) => id)]).toEqual([false, firsts.toReversed()]);
    await db.close();
  });
}

it("NextTasks reads all blocked and unblocked tasks, however different their numbers are (contract 4.5)", async () => {
  const db = await world(9, "");
  await db.write([{ sql: TASK, args: ["held", "w0", 1, "runner:x"] }]);
  const heads = new NextTasks(db, 2);
  for (let cycle = 0; cycle < 2; cycle++) {
    let looks = 1;
    const seen = new Set<string>();
    for (let more = true; more; looks++) {
      const look = await heads.read(2_000);
      ({ more } = look);
      for (const { id } of look.tasks) seen.add(id);
    }
    expect([looks < 10, seen.has("held"), seen.size]).toEqual([true, true, 9]);
  }
  await db.close();
});

it("NextTasks serves more directories than a page has, and none starves (contract 4.5)", async () => {
  await using app = await openApp({ inMemory: true, config: { limits: { max_concurrent_runs: 50 } } });
  const count = 600;
  const id = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, "0")}`;
  const numbers = Array.from({ length: count }, (_, n) => n);
  await app.db.write(numbers.map((n) => ({
    sql: `insert into worker (id, name, name_key, engine, work_dir, created_at, updated_at)
      values (?, ?, ?, 'echo', ?, 1, 1)`,
    args: [id(n), `w${n}`, `w${n}`, `${app.dataDir}/workers/${id(n)}`],
  })));
  await app.db.write(
    numbers.map((n) => ({ sql: TASK, args: [id(count + n), id(n), 1, ""] })),
  );
  await waitUntil("all have run", async () => {
    const row = await app.db.first<{ left: number }>(
      "select count(*) as left from task where status = 'pending'",
    );
    return row?.left === 0;
  }, 60_000);
});
