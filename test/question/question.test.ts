import { describe, expect, it } from "vitest";
import { fakeEngines } from "../harness/agents.ts";
import { type App, openApp } from "../harness/app.ts";
import { startAsker } from "../harness/asker.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const DAY_MS = 86_400_000;

function open(): Promise<App> {
  return openApp({ config: { engines: fakeEngines() } });
}

function answer(app: App, id: string, text: string) {
  return app.send(`POST /api/questions/${id}/answer`, { answer: text });
}

/** The tasks that brought answers. */
function brought(app: App): Promise<Json[]> {
  return app.db.read(
    "select task.* from task join question on answer_task_id = task.id order by task.id",
  );
}

describe("a question (contract 12)", () => {
  it("is sent to its conversation, and its answer becomes a task of the same worker", async () => {
    await using app = await open();
    const run = await startAsker(app);
    const question = await run.ask({ options: ["Red", "Blue"], default: "Blue" });
    expect(question).toMatchObject({
      session_key: run.sessionKey,
      worker_id: run.workerId,
      execution_id: run.executionId,
      status: "open",
      options: ["Red", "Blue"],
      default: "Blue",
      seen_at: null,
    });
    expect(question.expires_at - question.created_at).toBe(DAY_MS);
    const said = (await app.call(`GET /api/local/sessions/${run.sessionId}/messages`)).at(-1);
    expect(said).toMatchObject({ role: "bee", question_id: question.id, reply_to: run.messageId });
    expect(said.content).toMatch(
      /^Which colour\?\n\n1\. Red\n2\. Blue\n\nWithout an answer by .* UTC: Blue$/,
    );
    await run.end();
    const answered = await answer(app, question.id, "2");
    expect(answered.body).toMatchObject({ status: "answered", answer: "Blue", answered_by: "user:admin" });
    expect(answered.body.seen_at).not.toBeNull();
    const [task] = await brought(app);
    expect(task).toMatchObject({
      worker_id: run.workerId,
      session_key: run.sessionKey,
      message_id: run.messageId,
      type: "immediate",
      created_by: "user:admin",
      parent_task_id: run.taskId,
    });
    expect(task.instruction).toContain("You asked: Which colour?\n\nThe answer: Blue");
    expect((await answer(app, question.id, "1")).status).toBe(409);
    await app.settle();
  });

  it("that is answered while its run goes on becomes a task when that ends, unless the run has seen it", async () => {
    await using app = await open();
    const run = await startAsker(app);
    const unseen = await run.ask({ text: "One?" });
    const seen = await run.ask({ text: "Two?" });
    await answer(app, unseen.id, "first");
    expect((await answer(app, seen.id, "second")).body.seen_at).toBeNull();
    const waited = await app.send(`GET /api/questions/${seen.id}/wait`, undefined, run.headers);
    expect(waited.body).toMatchObject({ answer: "second", seen_at: expect.any(Number) });
    expect(await brought(app)).toEqual([]);
    await run.end();
    const tasks = await brought(app);
    expect(tasks.map((task) => task.instruction)).toEqual([expect.stringContaining("You asked: One?")]);
    expect((await app.call(`GET /api/questions/${unseen.id}`)).seen_at).not.toBeNull();
    await app.settle();
  });
});
