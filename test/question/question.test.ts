import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { startAskingRun, waitForRun } from "../harness/fakes/asker.ts";
import { TestClock } from "../harness/clock.ts";
import { buildBearer } from "../harness/model/people.ts";
import { runToken } from "../harness/service/run.ts";
import type { Json } from "../harness/service/client.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function open(options: { clock?: TestClock } = {}): Promise<App> {
  return openApp({ ...options, config: { engines: buildFakeEngines() } });
}

function answer(app: App, id: string, text: string) {
  return app.send(`POST /api/questions/${id}/answer`, { answer: text });
}

/** Lists the tasks that delivered answers. */
function listDeliveredTasks(app: App): Promise<Json[]> {
  return app.db.read("select task.* from task join question on answer_task_id = task.id order by task.id");
}

describe("a question (contract 12)", () => {
  it("reaches its conversation, and its answer becomes a task of the same worker", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
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
    const [task] = await listDeliveredTasks(app);
    expect(task).toMatchObject({
      worker_id: run.workerId,
      session_key: run.sessionKey,
      message_id: run.messageId,
      type: "immediate",
      created_by: "user:admin",
      parent_task_id: run.taskId,
      depth: 0,
    });
    expect(task.instruction).toContain("You asked: Which colour?\n\nThe answer: Blue");
    expect((await answer(app, question.id, "1")).status).toBe(409);
    expect((await app.send(`POST /api/questions/${question.id}/cancel`, {})).status).toBe(409);
    await app.settle();
  });

  it("with an answer during its run creates a task after the run, unless the run has read the answer", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
    const unseen = await run.ask({ text: "One?" });
    const seen = await run.ask({ text: "Two?" });
    await answer(app, unseen.id, "first");
    expect((await answer(app, seen.id, "second")).body.seen_at).toBeNull();
    // Only the agent's own request marks the answer as seen.
    expect((await app.call(`GET /api/questions/${seen.id}/wait`)).seen_at).toBeNull();
    const waited = await app.send(`GET /api/questions/${seen.id}/wait`, undefined, run.headers);
    expect(waited.body).toMatchObject({ answer: "second", seen_at: expect.any(Number) });
    expect(await listDeliveredTasks(app)).toEqual([]);
    await run.end();
    const tasks = await listDeliveredTasks(app);
    expect(tasks.map((task) => task.instruction)).toEqual([expect.stringContaining("You asked: One?")]);
    expect((await app.call(`GET /api/questions/${unseen.id}`)).seen_at).not.toBeNull();
    await app.settle();
  });

  it("stays unseen when another run of the conversation reads its answer", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Other" });
    const body = { worker_id, message_id: run.messageId, type: "immediate" };
    const file = join(app.dataDir, "end-other");
    await app.call("POST /api/tasks", { ...body, instruction: `until ${file}` });
    const other = buildBearer(await runToken(app, await waitForRun(app, worker_id), []));
    const { id } = await run.ask();
    await answer(app, id, "Red");
    const wait = async (headers: Record<string, string>) =>
      (await app.send(`GET /api/questions/${id}/wait`, undefined, headers)).body;
    expect(await wait(other)).toMatchObject({ answer: "Red", seen_at: null });
    expect(await wait(run.headers)).toMatchObject({ answer: "Red", seen_at: expect.any(Number) });
    await Deno.writeTextFile(file, "");
    await run.end();
    await app.settle();
  });

  it("is the same question if it is equal, open and of the same task, and then belongs to the asking run", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
    const [one, two] = await Promise.all([run.ask({ options: ["a"] }), run.ask({ options: ["a"] })]);
    expect(two.id).toBe(one.id);
    expect((await run.ask()).id).not.toBe(one.id);
    expect((await run.ask({ options: ["a"], default: "a" })).id).not.toBe(one.id);
    expect((await app.call("GET /api/questions?status=open")).length).toBe(3);
    await answer(app, one.id, "a");
    expect((await run.ask({ options: ["a"] })).id).not.toBe(one.id);
    // A question of another task is another question.
    const other = await startAskingRun(app, { name: "Other" });
    expect((await other.ask()).task_id).toBe(other.taskId);
    expect((await app.call(`GET /api/questions?worker_id=${other.workerId}`)).length).toBe(1);
    await other.end();
    await run.end();
    await app.settle();
  });

  it("gets its default at its deadline or else expires; both create one notice", async () => {
    const clock = new TestClock();
    await using app = await open({ clock });
    const run = await startAskingRun(app);
    const fallback = await run.ask({ default: "Red", timeout_ms: HOUR_MS });
    const none = await run.ask({ text: "And which size?", timeout_ms: HOUR_MS });
    await run.end();
    clock.advance(HOUR_MS - 1);
    await app.settle();
    expect((await app.call("GET /api/questions?status=open")).length).toBe(2);
    clock.advance(1);
    await app.until("question.expired");
    await app.until("question.answered");
    expect(await app.call(`GET /api/questions/${fallback.id}`)).toMatchObject({
      status: "answered",
      answer: "Red",
      answered_by: "default",
      answered_at: fallback.expires_at,
    });
    expect(await app.call(`GET /api/questions/${none.id}`)).toMatchObject({ status: "expired", answer: "" });
    const tasks = await listDeliveredTasks(app);
    expect(tasks).toHaveLength(1);
    // No user took part, so the task continues the agents' chain.
    expect(tasks[0]).toMatchObject({ created_by: `worker:${run.workerId}`, depth: 1 });
    expect(tasks[0].instruction).toContain("The answer: Red (no answer in time; this is your default)");
    for (const { id } of [fallback, none]) expect((await answer(app, id, "late")).status).toBe(409);
    await app.settle();
  });

  it("with a deadline during a downtime cannot be answered after the next start", async () => {
    const clock = new TestClock();
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    const config = { engines: buildFakeEngines() };
    let ids: string[];
    {
      await using app = await openApp({ clock, dataDir, config });
      const run = await startAskingRun(app);
      ids = [
        (await run.ask({ timeout_ms: 60_000 })).id,
        (await run.ask({ default: "x", timeout_ms: 60_000 })).id,
        (await run.ask({ text: "Still?" })).id,
      ];
      await run.end();
    }
    clock.advance(HOUR_MS);
    await using app = await openApp({ clock, dataDir, config });
    await app.until("question.expired");
    await app.until("question.answered");
    const [expired = "", byDefault = "", open = ""] = ids;
    expect((await answer(app, expired, "late")).status).toBe(409);
    expect((await answer(app, byDefault, "late")).body.detail).toMatch(/it is answered by default/);
    expect((await answer(app, open, "in time")).status).toBe(200);
    expect(await listDeliveredTasks(app)).toHaveLength(2);
    await app.settle();
    await app.stop();
    await Deno.remove(dataDir, { recursive: true });
  });

  it("cannot be answered after its deadline, even before its end is stored", async () => {
    const clock = new TestClock();
    await using app = await open({ clock });
    const run = await startAskingRun(app, { script: true });
    const { id } = await run.ask({ default: "x", timeout_ms: 1_000 });
    const stage = app.server.stages.find(({ name }) => name === "question");
    await stage?.stop();
    clock.advance(1_000);
    const late = await answer(app, id, "late");
    expect([late.status, late.body.detail]).toEqual([409, expect.stringMatching(/it expired/)]);
    await run.end();
  });

  it("ends with a clear of its conversation, its worker or its run, and its answer is no longer delivered", async () => {
    await using app = await open();
    const cleared = await startAskingRun(app, { name: "A" });
    const deleted = await startAskingRun(app, { name: "B" });
    const cancelled = await startAskingRun(app, { name: "C" });
    const gone = await startAskingRun(app, { name: "D" });
    const ids = [];
    for (const run of [cleared, deleted, cancelled]) {
      ids.push((await run.ask()).id);
      await answer(app, (await run.ask({ text: "Answered, and not seen?" })).id, "yes");
    }
    await gone.ask();
    await app.call(`DELETE /api/contexts?session_key=${encodeURIComponent(cleared.sessionKey)}`);
    await app.call(`DELETE /api/workers/${deleted.workerId}`);
    await app.call(`POST /api/executions/${cancelled.executionId}/cancel`);
    await app.call(`DELETE /api/local/sessions/${gone.sessionId}`);
    for (const id of ids) expect((await app.call(`GET /api/questions/${id}`)).status).toBe("cancelled");
    expect(await listDeliveredTasks(app)).toEqual([]);
    expect((await app.call(`GET /api/questions?session_key=${gone.sessionKey}`)).length).toBe(0);
    const events = await app.call("GET /api/events?kind=question.cancelled", undefined, {
      accept: "application/json",
    });
    expect(events.map((event: Json) => event.data.question_id).sort()).toEqual(ids.sort());
    await app.settle();
  });

  it("of a script's task or a person's is in the inbox, and nothing is sent", async () => {
    await using app = await open();
    const run = await startAskingRun(app, { script: true });
    const asked = await run.ask({ options: ["Yes", "No"] });
    expect(asked.session_key).toBe(`cli:${run.messageId}`);
    const own = await app.call("POST /api/questions", { message_id: "release", text: "Publish it?" });
    expect(own).toMatchObject({ session_key: "cli:release", worker_id: "", task_id: "", execution_id: "" });
    const inbox = (await app.call("GET /api/inbox")).filter(({ kind }: Json) => kind === "question");
    expect(inbox).toEqual([
      expect.objectContaining({ question_id: own.id, title: "Publish it?", worker_name: "" }),
      expect.objectContaining({
        question_id: asked.id,
        title: "Which colour?",
        detail: "Yes · No",
        worker_name: "Agent",
      }),
    ]);
    expect(await app.call("GET /api/messages/outbound")).toEqual([]);
    await answer(app, own.id, "Go");
    expect(await listDeliveredTasks(app)).toEqual([]);
    await answer(app, asked.id, "yes");
    await run.end();
    expect((await listDeliveredTasks(app)).map((task) => task.session_key)).toEqual([asked.session_key]);
    await app.settle();
  });

  it("with an invalid field is refused with a reason", async () => {
    await using app = await open();
    const run = await startAskingRun(app);
    const refused = async (body: Json, headers = run.headers) => {
      const reply = await app.send("POST /api/questions", body, headers);
      return [reply.status, reply.body.errors?.[0]?.path ?? reply.body.code];
    };
    const asked = { message_id: run.messageId, text: "Which?" };
    expect(await refused({ ...asked, text: " " })).toEqual([400, "text"]);
    expect(await refused({ ...asked, text: "x".repeat(16 * 1024 + 1) })).toEqual([400, "text"]);
    expect(await refused({ ...asked, options: Array.from({ length: 11 }, (_, i) => `${i}`) })).toEqual([
      400,
      "options",
    ]);
    expect(await refused({ ...asked, options: ["a", " a"] })).toEqual([400, "options"]);
    expect(await refused({ ...asked, options: [""] })).toEqual([400, "options.0"]);
    expect(await refused({ ...asked, options: ["a"], default: "b" })).toEqual([400, "default"]);
    expect(await refused({ ...asked, timeout_ms: 999 })).toEqual([400, "timeout_ms"]);
    expect(await refused({ ...asked, timeout_ms: 30 * DAY_MS + 1 })).toEqual([400, "timeout_ms"]);
    expect(await refused({ ...asked, message_id: "another" })).toEqual([404, "not_found"]);
    const ok = { ...asked, options: ["a", "b"], default: "2", timeout_ms: 30 * DAY_MS };
    expect((await app.send("POST /api/questions", ok, run.headers)).body.default).toBe("b");
    const { id } = await run.ask();
    expect((await app.send(`POST /api/questions/${id}/answer`, { answer: " " })).status).toBe(400);
    expect((await app.send("GET /api/questions/01a1fd23-4a4c-746f-99ac-8860e2641168")).status).toBe(404);
    await run.end();
  });

  it("has a limit per run and per conversation, and a chain of defaults ends", async () => {
    await using app = await openApp({
      config: { engines: buildFakeEngines(), limits: { max_chain_depth: 1 } },
    });
    const run = await startAskingRun(app, { script: true });
    for (let i = 0; i < 20; i++) await run.ask({ text: `Question ${i}?` });
    const more = await app.send(
      "POST /api/questions",
      { message_id: run.messageId, text: "One more?" },
      run.headers,
    );
    expect([more.status, more.body.detail]).toEqual([409, expect.stringMatching(/at most 20 questions/)]);
    for (let i = 0; i < 80; i++) {
      await app.call("POST /api/questions", { message_id: run.messageId, text: `Question ${i}?` });
    }
    const last = await app.send("POST /api/questions", { message_id: run.messageId, text: "Now?" });
    expect([last.status, last.body.detail]).toEqual([429, expect.stringMatching(/100 questions/)]);
    const deep = await startAskingRun(app, { name: "Deep" });
    await app.db.write([{ sql: "update task set depth = 1 where id = ?", args: [deep.taskId] }]);
    const chained = { message_id: deep.messageId, text: "Go on?", default: "Yes" };
    expect((await app.send("POST /api/questions", chained, deep.headers)).status).toBe(409);
    await deep.ask({ text: "Go on?" });
    await deep.end();
    await run.end();
  });
});
