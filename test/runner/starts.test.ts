import { expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import {
  createFakeRunner,
  createRemoteWorker,
  FakeRunner,
  startWaitingClaims,
} from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

/** Starts three runners with a waiting claim each, and builds a task for each. */
async function startClaims(app: App) {
  const runners: FakeRunner[] = [];
  const tasks = [];
  for (const n of [0, 1, 2]) {
    runners.push(await createFakeRunner(app, `r${n}`));
    const worker_id = await createRemoteWorker(app, "echo");
    tasks.push({ worker_id, message_id: "script", type: "immediate", instruction: `text ${n}` });
  }
  for (const runner of runners) await runner.claim({ wait_ms: 0 });
  return { tasks, claims: await startWaitingClaims(app, runners.map((runner) => () => runner.claim())) };
}

it("concurrent tasks go to as many claims, each with a separate directory (contract 18)", async () => {
  await using app = await openApp({ inMemory: true });
  const { claims, tasks } = await startClaims(app);
  await app.call("POST /api/tasks/batch", { tasks });
  const runs = (await Promise.all(claims)).map(({ body }) => body.run);
  expect(runs.map(({ execution }) => execution.instruction).sort()).toEqual(["text 0", "text 1", "text 2"]);
  expect(new Set(runs.map(({ work_dir }) => work_dir)).size).toBe(3);
  expect(await app.db.read("select attempt, run_count from task")).toEqual(
    Array(3).fill({ attempt: 1, run_count: 1 }),
  );
});

it("a task that cannot start on its runner does not delay the others (contract 18)", async () => {
  await using app = await openApp({ inMemory: true });
  const { claims, tasks } = await startClaims(app);
  const refuse = `create trigger broken before update of status on task when new.instruction = 'text 1' begin
    select raise(abort, 'this row is broken'); end`;
  await app.db.write([{ sql: refuse, args: [] }]);
  await app.call("POST /api/tasks/batch", { tasks });
  await waitUntil("the others start", async () => {
    const rows = await app.db.read("select instruction from execution order by 1");
    return rows.length === 2 && rows[0]?.instruction === "text 0" && rows[1]?.instruction === "text 2";
  });
  await app.db.write([{ sql: "drop trigger broken", args: [] }]);
  const bodies = (await Promise.all(claims)).map(({ body }) => body.run?.execution.instruction);
  expect(bodies).toEqual(expect.arrayContaining(["text 0", "text 2"]));
});
