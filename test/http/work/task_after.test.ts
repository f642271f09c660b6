import { expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import type { Json } from "../../harness/service/client.ts";

/** Creates a worker whose agents obey the first word of their instruction. */
async function openWithWorker(fields: object = {}) {
  const app = await openApp({ config: { engines: buildFakeEngines(), limits: { stop_grace: "300ms" } } });
  const worker = await app.call("POST /api/workers", { name: "Ada", ...fields });
  const task = (instruction: string, more: object = {}): object => ({
    message_id: "script",
    worker_id: worker.id,
    instruction,
    type: "immediate",
    ...more,
  });
  const create = (instruction: string, more: object = {}): Promise<Json> =>
    app.call("POST /api/tasks", task(instruction, more));
  const resume = () => app.call(`PUT /api/workers/${worker.id}`, { paused: false });
  const get = (id: string): Promise<Json> => app.call(`GET /api/tasks/${id}`);
  return { app, worker, task, create, resume, get };
}

async function readContext(app: App, taskId: string): Promise<Json> {
  const result = await app.db.readValue<string>("select result from execution where task_id = ?", [taskId]);
  return JSON.parse(result ?? "{}");
}

it("a task waits for its parents and gets their results as data (contract 25) [AFT-1]", async () => {
  const { app, create, resume, get } = await openWithWorker({ paused: true });
  await using _ = app;
  const one = await create("say one");
  const two = await create("say two");
  const child = await create("context", { after: [one.id, two.id, one.id] });
  expect(child).toMatchObject({
    status: "pending",
    after: [one.id, two.id],
    after_when: "success",
    held_by: { kind: "task", id: one.id, ids: [one.id, two.id], until: null },
  });
  expect(await get(child.id)).toEqual(child);
  expect(await app.call(`GET /api/tasks?after=${two.id}`)).toEqual([child]);
  await resume();
  await app.settle();
  expect(await get(child.id)).toMatchObject({ status: "completed", held_by: null });
  const { parents } = await readContext(app, child.id);
  expect(parents).toEqual([
    {
      task_id: one.id,
      status: "completed",
      result: expect.stringContaining("one"),
      ended_at: expect.any(Number),
    },
    {
      task_id: two.id,
      status: "completed",
      result: expect.stringContaining("two"),
      ended_at: expect.any(Number),
    },
  ]);
});

it("a failed parent cancels its tree with a reason and an inbox entry, and its retry returns the tree (contract 25) [AFT-1]", async () => {
  const { app, create, resume, get } = await openWithWorker({ paused: true });
  await using _ = app;
  const root = await create("exit 3");
  const child = await create("say child", { after: [root.id] });
  const grandchild = await create("say grandchild", { after: [child.id] });
  const anyway = await create("context", { after: [root.id], after_when: "end" });
  await resume();
  await app.settle();
  expect((await get(root.id)).status).toBe("failed");
  expect(await get(child.id)).toMatchObject({
    status: "cancelled",
    reason: `it waits for task ${root.id}, which failed`,
  });
  expect(await get(grandchild.id)).toMatchObject({
    status: "cancelled",
    reason: `it waits for task ${child.id}, which was cancelled`,
  });
  expect((await readContext(app, anyway.id)).parents).toMatchObject([{ task_id: root.id, status: "failed" }]);
  const stopped = (await app.call("GET /api/inbox")).filter(({ kind }: Json) => kind === "task_stopped");
  expect(stopped.map(({ task_id }: Json) => task_id).sort()).toEqual([child.id, grandchild.id].sort());
  expect(await create("say late", { after: [root.id] })).toMatchObject({
    status: "cancelled",
    held_by: null,
  });

  expect((await app.send(`POST /api/tasks/${child.id}/retry`, {})).body.detail).toContain(
    `it waits for task ${root.id}, which failed. Retry that task`,
  );
  await app.call("PUT /api/workers/" + root.worker_id, { paused: true });
  expect(await app.call(`POST /api/tasks/${root.id}/retry`, {})).toMatchObject({
    status: "pending",
    run_no: 2,
    attempt: 1,
  });
  expect(await get(child.id)).toMatchObject({ status: "pending", held_by: { kind: "task", ids: [root.id] } });
  expect(await get(grandchild.id)).toMatchObject({
    status: "pending",
    held_by: { kind: "task", ids: [child.id] },
  });
  expect((await get(anyway.id)).status).toBe("completed");
  expect((await app.call("GET /api/inbox")).filter(({ kind }: Json) => kind === "task_stopped")).toEqual([]);
  await app.db.write([{ sql: "update task set instruction = 'say again' where id = ?", args: [root.id] }]);
  await resume();
  await app.settle();
  expect([(await get(root.id)).attempt, (await get(grandchild.id)).status]).toEqual([2, "completed"]);
  expect((await app.send(`POST /api/tasks/${root.id}/retry`, {})).status).toBe(409);
});

it("#n names an earlier task of the same batch, and each bad name is refused with its index (contract 25)", async () => {
  const { app, task, resume, get } = await openWithWorker();
  await using _ = app;
  const { tasks } = await app.call("POST /api/tasks/batch", {
    tasks: [task("say one"), task("say two", { after: ["#1"] }), task("context", { after: ["#1", "#2"] })],
  });
  await resume();
  await app.settle();
  const ids = tasks.map(({ id }: Json) => id);
  expect((await get(ids[2])).after).toEqual(ids.slice(0, 2));
  expect((await readContext(app, ids[2])).parents.map((one: Json) => one.task_id)).toEqual(ids.slice(0, 2));
  for (const name of ["#3", "#2", "#0", "01a1fd23-4a4c-746f-99ac-8860e2641168", "x"]) {
    const refused = await app.send("POST /api/tasks/batch", {
      tasks: [task("say one"), task("say two", { after: [name] })],
    });
    expect([refused.status, refused.body.errors[0].path], name).toEqual([400, "tasks.1.after.0"]);
  }
  expect((await app.send("POST /api/tasks", task("x", { after: ["#1"] }))).body.detail).toContain("no batch");
  const more = { type: "countdown", scheduled_at: Date.now() + 60_000, after: [ids[0]] };
  expect((await app.send("POST /api/tasks", task("x", more))).body.errors[0].path).toBe("after");
  expect((await app.send("POST /api/tasks", task("x", { after: Array(21).fill(ids[0]) }))).status).toBe(400);
});

it("a chain of tasks that people create has at most 100 after the first (contract 25)", async () => {
  const { app, task } = await openWithWorker({ paused: true });
  await using _ = app;
  const chain = (count: number) => ({
    tasks: Array.from({ length: count }, (_, n) => task(`say ${n}`, n === 0 ? {} : { after: [`#${n}`] })),
  });
  expect((await app.send("POST /api/tasks/batch", chain(102))).body.errors[0]).toMatchObject({
    path: "tasks.101.after",
    message: expect.stringContaining("longer than 100"),
  });
  const { tasks } = await app.call("POST /api/tasks/batch", chain(101));
  // A single change of status cancels the whole chain.
  await app.call(`POST /api/tasks/${tasks[0].id}/cancel`, {});
  const counts = await app.db.read("select status, count(*) as n from task group by status");
  expect(counts).toEqual([{ status: "cancelled", n: 101 }]);
  const events = await app.db.readValue("select count(*) from journal where kind = 'task.cancelled'");
  expect(events).toBe(101);
});

it("a parent that is cleared or whose worker is deleted counts as cancelled, and retention keeps results (contract 25) [AFT-1]", async () => {
  const { app, create, resume, get, worker } = await openWithWorker({ paused: true });
  await using _ = app;
  const other = await app.call("POST /api/workers", { name: "Bob" });
  const done = await create("say done", { worker_id: other.id, message_id: "cleared" });
  await app.settle();
  const paused = await app.call("POST /api/workers", { name: "Cid", paused: true });
  const doomed = await create("say x", { worker_id: paused.id, message_id: "cleared" });
  const gone = await create("say y", { worker_id: paused.id, message_id: "gone" });
  const child = await create("context", { after: [done.id, doomed.id, gone.id], after_when: "end" });
  const strict = await create("say z", { after: [gone.id] });
  await app.call("DELETE /api/contexts?session_key=cli:cleared");
  await app.call(`DELETE /api/workers/${paused.id}`);
  await app.db.write([{ sql: "delete from execution where task_id = ?", args: [done.id] }, {
    sql: "delete from task where id = ?",
    args: [done.id],
  }]);
  await resume();
  await app.settle();
  expect((await get(child.id)).status).toBe("completed");
  expect((await readContext(app, child.id)).parents).toMatchObject([
    { task_id: done.id, status: "completed", result: expect.stringContaining("done") },
    { task_id: doomed.id, status: "cancelled" },
    { task_id: gone.id, status: "cancelled" },
  ]);
  expect((await get(strict.id)).status).toBe("cancelled");
  expect((await app.send(`POST /api/tasks/${gone.id}/retry`, {})).body.detail).toContain(
    "worker was deleted",
  );
  expect(worker.id).not.toBe(paused.id);
});

it("a cancelled parent holds its children until its run has ended (contract 25) [AFT-1]", async () => {
  const { app, create, get } = await openWithWorker();
  await using _ = app;
  const parent = await create("ignore-term");
  await app.until("execution.started");
  const other = await app.call("POST /api/workers", { name: "Bob" });
  const child = await create("say x", { worker_id: other.id, after: [parent.id], after_when: "end" });
  const { execution_id } = await get(parent.id);
  await app.call(`POST /api/executions/${execution_id}/cancel`, {});
  await app.settle();
  const [run] = await app.db.read<{ ended: number; started: number }>(
    `select parent.completed_at as ended, child.created_at as started
    from execution as parent, execution as child where parent.task_id = ? and child.task_id = ?`,
    [parent.id, child.id],
  );
  expect(run?.started).toBeGreaterThanOrEqual(run?.ended ?? Infinity);
});
