import { expect, it } from "vitest";
import { ClaudeDialogue } from "../../src/engine/protocol/claude_dialogue.ts";
import { claude } from "../../src/engine/adapters/claude.ts";
import type { Line } from "../../src/engine/protocol/adapter.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { ORDER } from "../harness/model/order.ts";
import { createTempDir } from "../harness/service/process.ts";

/** Starts a run of a program that waits for a file, and returns the run. */
async function startRun(app: App, content: string) {
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
  await app.until("execution.started");
  const [execution] = await app.call("GET /api/executions");
  return { worker, session, execution };
}

const listTasks = (app: App, workerId: string) => app.call(`GET /api/tasks?worker_id=${workerId}`);

it("words for a run whose engine takes none become one task of the same conversation [STR-1]", async () => {
  await using app = await openApp({ config: { engines: buildFakeEngines() } });
  const { worker, session, execution } = await startRun(app, "sleep 3");
  const answers = await Promise.all(
    ["words", "words"].map((content) => app.send(`POST /api/executions/${execution.id}/steer`, { content })),
  );
  for (const { status, body } of answers) expect([status, body.status]).toEqual([202, "queued"]);
  await app.settle();
  const tasks = await listTasks(app, worker.id);
  expect(tasks.map((task: { instruction: string }) => task.instruction).sort()).toEqual([
    "sleep 3",
    "words\n\nwords",
  ]);
  expect(tasks.every((task: { session_key: string }) => task.session_key === `local:${session.id}`)).toBe(
    true,
  );
});

it("words that have a task get no second one, and words that the agent has confirmed get none [STR-1]", async () => {
  await using app = await openApp({ config: { engines: buildFakeEngines() } });
  const { worker, execution } = await startRun(app, "sleep 3");
  const steer = (content: string) => app.call(`POST /api/executions/${execution.id}/steer`, { content });
  const { id } = await steer("confirmed");
  await app.db.write([{ sql: "update steer set status = 'delivered' where id = ?", args: [id] }]);
  await steer("words");
  await app.settle();
  await steer("after the end");
  await app.settle();
  const tasks = await listTasks(app, worker.id);
  expect(tasks.map((task: { instruction: string }) => task.instruction).sort()).toEqual([
    "after the end",
    "sleep 3",
    "words",
  ]);
});

it("words for a run that has ended become a task immediately, and a repeated request makes no second one [STR-1]", async () => {
  await using app = await openApp({ config: { engines: buildFakeEngines() } });
  const { worker, execution } = await startRun(app, "both");
  await app.settle();
  const headers = { "idempotency-key": "once" };
  const words = { content: "and now this" };
  const first = await app.call(`POST /api/executions/${execution.id}/steer`, words, headers);
  const again = await app.call(`POST /api/executions/${execution.id}/steer`, words, headers);
  expect(first.follow_up_task_id).toMatch(/^[0-9a-f-]{36}$/);
  expect(again).toEqual(first);
  await app.settle();
  expect(await listTasks(app, worker.id)).toHaveLength(2);
});

it("empty words and an unknown run are refused", async () => {
  await using app = await openApp({ config: { engines: buildFakeEngines() } });
  const { execution } = await startRun(app, "sleep 3");
  const route = `POST /api/executions/${execution.id}/steer`;
  expect((await app.send(route, { content: "" })).status).toBe(400);
  expect(
    (await app.send("POST /api/executions/01a1fd23-4c7d-7750-a391-3a9041dee235/steer", { content: "x" }))
      .status,
  )
    .toBe(404);
});

it("a lost run's words are in the instruction of the next attempt [STR-1]", async () => {
  await using folder = await createTempDir();
  const options = { dataDir: folder.path, config: { engines: buildFakeEngines() } };
  await using before = await openApp(options);
  const { worker, execution } = await startRun(before, "sleep 3");
  await before.call(`POST /api/executions/${execution.id}/steer`, { content: "be quick" });
  await before.stop();
  await using app = await openApp(options);
  await app.settle();
  const [next, ...others] = await app.call("GET /api/executions");
  expect(others).toHaveLength(1);
  expect(next.instruction).toBe(
    "sleep 3\n\nWhile you worked on this before, people added (you may have read it already):\n\nbe quick",
  );
  expect(await listTasks(app, worker.id)).toHaveLength(1);
  expect(await app.db.first("select status, carried from steer")).toEqual({
    status: "delivered",
    carried: 0,
  });
});

it("Claude Code's turn ends when it has taken up every message, by however many results (facts, engines 13)", () => {
  const said: Line[] = [];
  const link = { say: (text: string) => void said.push(JSON.parse(text)), close() {} };
  const dialogue = new ClaudeDialogue(link, (line) => claude.parseLine(line));
  dialogue.turn({ ...ORDER, prompt: "first" }, () => {});
  dialogue.steer("u1", "second");
  expect(said[1]).toMatchObject({ type: "user", uuid: "u1", message: { content: [{ text: "second" }] } });
  const usage = { input_tokens: 10, output_tokens: 1 };
  const result = (text: string) => ({
    type: "result",
    is_error: false,
    result: text,
    usage,
    total_cost_usd: 1,
  });
  const held = dialogue.hear(result("FIRST"));
  expect(held.map(({ kind }) => kind)).not.toContain("done");
  expect(dialogue.hear({ type: "user", isReplay: true, uuid: "u1" })).toEqual([{
    kind: "steered",
    id: "u1",
    taken: true,
  }]);
  const end = dialogue.hear(result("SECOND"));
  expect(end).toContainEqual({ kind: "done", ok: true, text: "FIRST\n\nSECOND", failure: null });
  expect(end).toContainEqual({ kind: "usage", span: "run", usage: { input_tokens: 20, output_tokens: 2 } });
});
