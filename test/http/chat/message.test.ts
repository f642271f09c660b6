import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { buildForm, fetchAs } from "../requests.ts";
import { startRun } from "../../harness/service/run.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";

async function conversation(app: App) {
  await app.call("POST /api/workers", { name: "Ada" });
  const { id } = await app.call("POST /api/local/sessions");
  const { message_id } = await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
  await app.settle();
  return { sessionId: id, messageId: message_id };
}

async function post(app: App, body: FormData, headers: Record<string, string> = {}) {
  const response = await fetchAs(app, "POST /api/messages", { headers, body });
  return { status: response.status, body: await response.json() };
}

describe("POST /api/messages (interface 4.2, message send, contract 5)", () => {
  it("sends a text into the conversation of a message, as the system for an operator", async () => {
    await using app = await openApp();
    const { sessionId, messageId } = await conversation(app);
    const reply = await app.send("POST /api/messages", { message_id: messageId, content: "One more thing" });
    expect([reply.status, reply.body]).toEqual([201, {
      id: expect.any(String),
      session_key: `local:${sessionId}`,
      platform: "local",
      message_id: messageId,
      content: "One more thing",
      media: null,
      status: "sent",
      source_type: "system",
      source_id: "user:admin",
      question_id: "",
      next_attempt_at: null,
      attempt: 0,
      error: "",
      created_at: expect.any(Number),
      sent_at: expect.any(Number),
    }]);
    const history = await app.call(`GET /api/local/sessions/${sessionId}/messages`);
    expect(history.at(-1)).toMatchObject({ role: "bee", content: "One more thing" });
    expect((await app.call("GET /api/messages/outbound"))[0]).toEqual(reply.body);
  });

  it("sends a file with or without text, which the session can download", async () => {
    await using app = await openApp();
    const { sessionId, messageId } = await conversation(app);
    const both = await post(app, buildForm({ content: "see", message_id: messageId }, "data"));
    expect(both).toMatchObject({
      status: 201,
      body: { content: "see", media: { size: 4, mime: "text/plain" } },
    });
    const alone = await post(app, buildForm({ message_id: messageId }, "data"));
    expect(alone).toMatchObject({ status: 201, body: { content: "" } });
    const { name } = both.body.media;
    expect((await app.send(`GET /api/local/sessions/${sessionId}/media/${name}`)).body).toBe("data");
    const text = await post(app, buildForm({ message_id: messageId, content: "no file" }));
    expect(text).toMatchObject({ status: 201, body: { media: null } });
  });

  it("leaves no file of a refused message", async () => {
    await using app = await openApp();
    const { messageId } = await conversation(app);
    expect((await post(app, buildForm({ message_id: UNKNOWN }, "data"))).body.errors[0].path).toBe(
      "message_id",
    );
    expect((await post(app, buildForm({}, "data"))).body.errors[0].path).toBe("message_id");
    expect((await post(app, buildForm({ message_id: messageId, colour: "red" }, "data"))).body.errors[0].path)
      .toBe("colour");
    expect((await post(app, buildForm({ message_id: messageId }))).body.errors[0].path).toBe("content");
    const { uploads } = app.server.parts.paths;
    const left = [...Deno.readDirSync(uploads)].flatMap((
      { name },
    ) => [...Deno.readDirSync(`${uploads}/${name}`)]);
    expect(left).toEqual([]);
  });

  it("refuses empty texts, unknown messages and unknown fields", async () => {
    await using app = await openApp();
    const { messageId } = await conversation(app);
    const bad = [
      [{ message_id: messageId }, "content"],
      [{ message_id: messageId, content: " " }, "content"],
      [{ message_id: UNKNOWN, content: "x" }, "message_id"],
      [{ content: "x" }, "message_id"],
      [{ message_id: messageId, content: "x", source_type: "worker" }, "source_type"],
    ] as const;
    for (const [body, path] of bad) {
      const reply = await app.send("POST /api/messages", body);
      expect([reply.status, reply.body.errors[0].path]).toEqual([400, path]);
    }
  });

  it("a form with the same key sends one message; another text, file or message is refused (contract 1)", async () => {
    await using app = await openApp();
    const { sessionId, messageId } = await conversation(app);
    const key = { "idempotency-key": "form" };
    const said = { message_id: messageId, content: "see" };
    const first = await post(app, buildForm(said, "data"), key);
    expect(first.status).toBe(201);
    expect(await post(app, buildForm(said, "data"), key)).toEqual(first);
    const others = [
      buildForm(said, "Data"),
      buildForm(said, "data", "b.txt"),
      buildForm(said),
      buildForm({ ...said, content: "look" }, "data"),
    ];
    for (const body of others) expect(await post(app, body, key)).toMatchObject({ status: 409 });
    expect(await app.call("GET /api/messages/outbound?source_type=system")).toHaveLength(1);
    const { uploads } = app.server.parts.paths;
    expect([...Deno.readDirSync(`${uploads}/${sessionId}`)].map((entry) => entry.name)).toEqual([
      first.body.media.name,
    ]);
    expect([...Deno.readDirSync(`${uploads}/incoming`)]).toEqual([]);
  });

  it("simultaneous forms with one key create one message and one file, and get the same response", async () => {
    await using app = await openApp();
    const { sessionId, messageId } = await conversation(app);
    const replies = await Promise.all(
      Array.from(
        { length: 10 },
        () => post(app, buildForm({ message_id: messageId }, "data"), { "idempotency-key": "once" }),
      ),
    );
    expect(new Set(replies.map((reply) => JSON.stringify(reply))).size).toBe(1);
    const folder = `${app.server.parts.paths.uploads}/${sessionId}`;
    expect([...Deno.readDirSync(folder)].map((entry) => entry.name)).toEqual([replies[0]?.body.media.name]);
  });

  it("a run sends messages as its worker, in its own conversation only (contract 2)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app);
    const other = await startRun(app, [], "Other");
    const said = await app.send(
      "POST /api/messages",
      { message_id: run.messageId, content: "hi" },
      run.headers,
    );
    expect(said.body).toMatchObject({ source_type: "worker", source_id: run.workerId });
    for (const message_id of [other.messageId, UNKNOWN, "anything"]) {
      const reply = await app.send("POST /api/messages", { message_id, content: "hi" }, run.headers);
      expect([reply.status, reply.body.code]).toEqual([404, "not_found"]);
    }
  });
});

describe("GET /api/messages/inbound and /outbound (interface 4.2)", () => {
  it("support all filters of the interface, and paging", async () => {
    await using app = await openApp();
    const { sessionId, messageId } = await conversation(app);
    const other = await conversation(app);
    const [first] = await app.call(`GET /api/messages/inbound?session_key=local:${sessionId}`);
    expect(first).toMatchObject({
      id: messageId,
      status: "bee_processed",
      platform: "local",
      content: "hello",
    });
    const at = first.received_at;
    const counts: [string, number][] = [
      ["inbound", 2],
      ["inbound?platform=local", 2],
      ["inbound?platform=telegram", 0],
      ["inbound?status=bee_processed,failed", 2],
      ["inbound?status=received", 0],
      [`inbound?received_from=${at}&received_to=${at}&session_key=local:${sessionId}`, 1],
      [`inbound?received_to=${at - 1}`, 0],
      [`outbound?session_key=local:${other.sessionId}`, 1],
      ["outbound?status=sent", 2],
      ["outbound?status=failed", 0],
      ["outbound?source_type=worker", 1],
      ["outbound?source_type=worker,bee", 2],
      ["outbound?source_id=nobody", 0],
      ["outbound?sent_from=0&sent_to=1", 0],
      ["outbound?page_size=1&page=2", 1],
    ];
    for (const [path, count] of counts) {
      expect([path, (await app.call(`GET /api/messages/${path}`)).length]).toEqual([path, count]);
    }
    for (const query of ["status=done", "page_size=101", "page=0", "received_from=x", "colour=red"]) {
      expect([query, (await app.send(`GET /api/messages/inbound?${query}`)).status]).toEqual([query, 400]);
    }
  });
});

describe("GET /api/messages/:id/trace (contract 5)", () => {
  it("shows parts, routing with its reason, task, execution and reply of a merged message", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock, config: { bee: { quiet_window: "60ms" } } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    const parts: string[] = [];
    for (const content of ["one", "two", "three"]) {
      const { message_id } = await app.call(`POST /api/local/sessions/${id}/messages`, { content });
      parts.push(message_id);
    }
    clock.advance(60);
    await app.settle();
    const trace = await app.call(`GET /api/messages/${parts[2]}/trace`);
    expect(trace.parts.map((one: { content: string; status: string }) => [one.content, one.status])).toEqual([
      ["one", "merged"],
      ["two", "merged"],
      ["three", "bee_processed"],
    ]);
    expect(trace.message.id).toBe(parts[2]);
    expect(trace.routing).toEqual([
      expect.objectContaining({ engine: "rules", reason: "Ada is the only worker", task_count: 1 }),
    ]);
    expect(trace.tasks).toEqual([
      expect.objectContaining({ status: "completed", instruction: "one\ntwo\nthree" }),
    ]);
    expect(trace.executions).toEqual([
      expect.objectContaining({ worker_id: worker.id, status: "completed" }),
    ]);
    expect(trace.replies).toEqual([
      expect.objectContaining({ content: "one\ntwo\nthree", source_type: "worker" }),
    ]);
    const times = [
      trace.parts[0].received_at,
      trace.routing[0].created_at,
      trace.tasks[0].created_at,
      trace.executions[0].started_at,
      trace.executions[0].completed_at,
      trace.replies[0].sent_at,
    ];
    expect(times).toEqual([...times].sort((a, b) => a - b));
    // A merged part has no separate routing.
    expect(await app.call(`GET /api/messages/${parts[0]}/trace`)).toEqual(trace);
    expect((await app.send(`GET /api/messages/${UNKNOWN}/trace`)).status).toBe(404);
  });
});
