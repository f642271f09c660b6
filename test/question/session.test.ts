import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import { waitForRun } from "../harness/fakes/asker.ts";
import { runToken } from "../harness/service/run.ts";
import { createSchedule } from "../harness/model/workload.ts";
import type { Json } from "../harness/service/client.ts";

const FAKE_CLAUDE = new URL("../harness/fakes/fake_claude.sh", import.meta.url).pathname;

/** Starts a service with a worker whose engine has sessions, and a conversation with it. */
async function open(): Promise<{ app: App; worker: Json; session: Json }> {
  const engines = { default: "claude", claude: { command: FAKE_CLAUDE, env: { ANTHROPIC_API_KEY: "x" } } };
  const app = await openApp({ config: { engines } });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  return { app, worker, session };
}

/** Asks in the active run, ends it, and answers; resolves when all work is done. */
async function askAndAnswer(app: App, worker: Json, file: string, mode = "prompt"): Promise<Json> {
  const run = await waitForRun(app, worker.id);
  const headers = { authorization: `Bearer ${await runToken(app, run, [])}` };
  const asked = { message_id: run.message_id, text: "Which?" };
  const { body: question } = await app.send("POST /api/questions", asked, headers);
  await Deno.writeTextFile(file, "");
  await app.settle();
  // The last line decides what the fake engine does: it stores its prompt.
  await app.call(`POST /api/questions/${question.id}/answer`, { answer: `Blue\n${mode}` });
  await app.settle();
  return run;
}

async function listExecutions(app: App): Promise<Json[]> {
  return (await app.call("GET /api/executions")).reverse();
}

describe("the answer reaches the same session (contract 12)", () => {
  it("the session of the conversation", async () => {
    const { app, worker, session } = await open();
    await using _ = app;
    const file = join(app.dataDir, "end");
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: `until ${file}` });
    await askAndAnswer(app, worker, file);
    const [first, second] = await listExecutions(app);
    expect(second).toMatchObject({ session_id: first.session_id, result: "1" });
    const prompt = await Deno.readTextFile(join(worker.work_dir, "prompt.txt"));
    expect(prompt).toContain("You asked: Which?\n\nThe answer: Blue\nprompt");
    expect(prompt).not.toContain("The task in which you asked");
  });

  it("the session of a schedule's run, and leaves the session of the conversation unchanged", async () => {
    const { app, worker, session } = await open();
    await using _ = app;
    const said = await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "ok one" });
    await app.settle();
    const [chat] = await listExecutions(app);
    const file = join(app.dataDir, "end");
    const schedule = await createSchedule(app, worker.id, `until ${file}`, { message_id: said.message_id });
    await app.call(`POST /api/tasks/${schedule}/run`, {});
    await askAndAnswer(app, worker, file);
    const [, asking, answered] = await listExecutions(app);
    expect(asking.session_id).not.toBe(chat.session_id);
    expect(answered).toMatchObject({ session_id: asking.session_id, result: "1" });
    const [context] = await app.call(`GET /api/contexts?session_key=local:${session.id}`);
    expect(context.session_id).toBe(chat.session_id);
  });

  it("a session whose totals are already counted, and does not count them twice", async () => {
    const { app, worker } = await open();
    await using _ = app;
    const file = join(app.dataDir, "end");
    const schedule = await createSchedule(app, worker.id, `until ${file}`);
    await app.call(`POST /api/tasks/${schedule}/run`, {});
    // Claude Code reports the total cost of its session, including all earlier runs.
    await askAndAnswer(app, worker, file, "cost 0.8");
    const [asking, answered] = await listExecutions(app);
    expect(answered.session_id).toBe(asking.session_id);
    expect([asking.usage.cost_usd, answered.usage.cost_usd]).toEqual([0.5, 0.3]);
  });

  it("a new session with the task of the question, after the context was cleared", async () => {
    const { app, worker, session } = await open();
    await using _ = app;
    const file = join(app.dataDir, "end");
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: `until ${file}` });
    const run = await waitForRun(app, worker.id);
    await app.call(`DELETE /api/contexts/${worker.id}?session_key=${run.session_key}`);
    await askAndAnswer(app, worker, file);
    const [first, second] = await listExecutions(app);
    expect(second.session_id).not.toBe(first.session_id);
    const prompt = await Deno.readTextFile(join(worker.work_dir, "prompt.txt"));
    expect(prompt).toContain(`# The task in which you asked\n\nuntil ${file}`);
  });
});
