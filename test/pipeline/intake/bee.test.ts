import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createId } from "../../../src/base/id.ts";
import { WAKEUP } from "../../../src/base/wakeups.ts";
import { type App, openApp, type TestSettings } from "../../harness/service/app.ts";
import { insertRows } from "../../harness/model/counters.ts";
import { waitUntil } from "../../harness/wait.ts";

const FAKE_BEE = new URL("../../harness/fakes/fake_bee.sh", import.meta.url).pathname;

/** A service whose coordinator is a program that prints `answers`, one per run. */
async function withBee(answers: (string | object)[], bee: TestSettings["bee"] = {}) {
  const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
  for (const [index, answer] of answers.entries()) {
    const text = typeof answer === "string" ? answer : JSON.stringify(answer);
    await Deno.writeTextFile(join(folder, `answer-${index + 1}`), text);
  }
  const thinker = { kind: "command", command: FAKE_BEE, env: { FAKE_BEE: folder } };
  const app = await openApp({
    config: { bee: { engine: "thinker", ...bee }, engines: { default: "echo", thinker } },
  });
  const ada = await app.call("POST /api/workers", { name: "Ada", description: "Writes" });
  const grace = await app.call("POST /api/workers", { name: "Grace", description: "Counts" });
  const session = await app.call("POST /api/local/sessions");
  const send = async (content: string): Promise<string> =>
    (await app.call(`POST /api/local/sessions/${session.id}/messages`, { content })).message_id;
  return {
    app,
    folder,
    ada,
    grace,
    session,
    send,
    prompt: (n: number) => Deno.readTextFile(join(folder, `prompt-${n}`)),
    count: async () => Number(await Deno.readTextFile(join(folder, "count")).catch(() => "0")),
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

async function replies(app: App, sessionId: string): Promise<string[]> {
  const history = await app.call(`GET /api/local/sessions/${sessionId}/messages`);
  return history.filter((one: { role: string }) => one.role === "bee").map((one: { content: string }) =>
    one.content
  );
}

/** Inserts messages of different conversations that were fed at `at`. */
async function feed({ db }: App, count: number, at: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => ({
    id: createId(),
    session_key: `other:${n}`,
    platform: "other",
    platform_message_id: `${n}`,
    content: "hello",
    status: "feeding",
    due_at: at,
    received_at: at,
  }));
  await db.write(insertRows("inbound_message", rows));
}

const give = (worker: string, instruction: string, more: object = {}) => ({ worker, instruction, ...more });

describe("the coordinator on an engine (contract 4.4)", () => {
  it("splits one message into tasks for two workers, a schedule and a reply in one batch", async () => {
    await using it = await withBee([{
      reply: "Both are on it.",
      tasks: [
        give("Ada", "write it"),
        give("grace", "count it"),
        give("Grace", "count every Monday", {
          type: "scheduled",
          cron: "0 9 * * 1",
          time_zone: "Europe/Berlin",
        }),
      ],
    }]);
    const message = await it.send("please write and count, and count every Monday");
    await it.app.settle();
    expect((await replies(it.app, it.session.id)).sort()).toEqual([
      "Both are on it.",
      "count it",
      "write it",
    ]);
    const trace = await it.app.call(`GET /api/messages/${message}/trace`);
    expect(trace.message).toMatchObject({ status: "bee_processed", attempt: 1 });
    expect(trace.routing).toEqual([expect.objectContaining({
      engine: "thinker",
      status: "completed",
      reason: "the coordinator's plan: 3 tasks for Ada, Grace, and a reply",
      reply: "Both are on it.",
      task_count: 3,
    })]);
    expect(
      trace.tasks.map((one: { status: string; created_by: string }) => [one.status, one.created_by]).sort(),
    ).toEqual([
      ["completed", "bee"],
      ["completed", "bee"],
      ["scheduled", "bee"],
    ]);
    const log = await it.app.send(`GET /api/executions/${trace.routing[0].id}/logs`);
    expect([log.status, log.body]).toEqual([
      200,
      expect.stringMatching(/thinker starts, attempt 1[\s\S]*thinking/),
    ]);
  });

  it("gets workers, departments, memory, the earlier conversation, and the message with its parts", async () => {
    await using it = await withBee([{ reply: "hm" }], {
      persona: "You speak like a pirate.",
      quiet_window: "1s",
    });
    await it.app.call("POST /api/departments", { name: "Labs" });
    await it.app.call(`PUT /api/workers/${it.ada.id}`, { departments: ["Labs"] });
    await it.app.call("PUT /api/memory/entry", { scope: "global", key: "tone", value: "short" });
    await it.app.call("PUT /api/memory/entry", {
      scope: `local:${it.session.id}`,
      key: "name",
      value: "Bob",
    });
    await it.send("first question");
    await it.app.settle();
    await it.send("one");
    const last = await it.send("two");
    await it.app.settle();
    const prompt = await it.prompt(2);
    for (
      const wanted of [
        "You speak like a pirate.",
        `- Ada (id ${it.ada.id}) [Labs]: Writes`,
        "- Labs",
        "- tone: short",
        "- name: Bob",
        "person: first question",
        "answer: hm",
        `Message id: ${last}\n\none\ntwo`,
      ]
    ) expect(prompt).toContain(wanted);
    expect(prompt).not.toContain("person: one");
  });

  it("is skipped by mentions and the session's own worker", async () => {
    await using it = await withBee([{ reply: "hm" }]);
    await it.send("@Ada hello");
    await it.app.settle();
    await it.app.call(`PUT /api/local/sessions/${it.session.id}`, { worker_id: it.grace.id });
    await it.send("hello again");
    await it.app.settle();
    expect(await replies(it.app, it.session.id)).toEqual(["hello", "hello again"]);
    expect(await it.count()).toBe(0);
  });

  it("gets an unusable plan back once with the reason, and may correct it", async () => {
    await using it = await withBee([{ tasks: [give("Eve", "spy")] }, { tasks: [give("Ada", "write")] }]);
    const message = await it.send("hello");
    await it.app.settle();
    expect(await replies(it.app, it.session.id)).toEqual(["write"]);
    expect(await it.prompt(2)).toMatch(/could not be used[\s\S]*no worker has the name "Eve"/);
    const { routing } = await it.app.call(`GET /api/messages/${message}/trace`);
    expect(routing).toHaveLength(1);
  });

  it("gives up after the second bad plan, and notifies the user", async () => {
    await using it = await withBee(["I would rather not say."]);
    const message = await it.send("hello");
    await it.app.settle();
    expect(await it.count()).toBe(2);
    expect(await replies(it.app, it.session.id)).toEqual([
      expect.stringMatching(/Cannot route this message: engine_error, its plan cannot be used: .*@name/),
    ]);
    const trace = await it.app.call(`GET /api/messages/${message}/trace`);
    expect(trace.message).toMatchObject({
      status: "failed",
      error: expect.stringContaining("not one JSON object"),
    });
    expect(trace.tasks).toEqual([]);
    expect(trace.replies).toEqual([expect.objectContaining({ source_type: "system" })]);
  });

  it("is retried with back-off up to bee.max_attempts, while the message waits", async () => {
    await using it = await withBee(["!exit 3", { tasks: [give("Ada", "write")] }]);
    const message = await it.send("hello");
    await it.app.settle();
    expect(await replies(it.app, it.session.id)).toEqual(["write"]);
    const { routing, message: routed } = await it.app.call(`GET /api/messages/${message}/trace`);
    expect(
      routing.map((
        one: { status: string; failure: string; attempt: number },
      ) => [one.status, one.failure, one.attempt]),
    )
      .toEqual([["failed", "exit_code", 1], ["completed", "", 2]]);
    expect(routing[1].created_at - routing[0].completed_at).toBeGreaterThanOrEqual(1_000);
    expect(routed.attempt).toBe(2);
  });

  it("is ended after its time limit, and the message fails after the last attempt", async () => {
    await using it = await withBee(["!sleep 60"], { timeout: "300ms", max_attempts: 1 });
    const message = await it.send("hello");
    await it.app.settle();
    const { routing } = await it.app.call(`GET /api/messages/${message}/trace`);
    expect(routing).toEqual([
      expect.objectContaining({ failure: "timeout", error: "ran longer than 0.3 s (bee.timeout)" }),
    ]);
    expect(await replies(it.app, it.session.id)).toEqual([expect.stringContaining("timeout")]);
  });

  it("reports a missing engine", async () => {
    await using app = await openApp({
      config: {
        bee: { engine: "gone", max_attempts: 1 },
        engines: { gone: { kind: "command", command: "/nowhere/bee" } },
      },
    });
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
    await app.settle();
    expect(await replies(app, id)).toEqual([expect.stringMatching(/spawn_failed, Cannot start the program/)]);
  });

  it("a clear ends its processes, and nothing of its plan is executed", async () => {
    await using it = await withBee(["!sleep 60"]);
    const message = await it.send("hello");
    while (await it.count() === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await it.app.call(`DELETE /api/contexts?session_key=local:${it.session.id}`);
    await it.app.settle();
    const trace = await it.app.call(`GET /api/messages/${message}/trace`);
    expect(trace).toMatchObject({ message: { status: "failed" }, tasks: [], replies: [] });
    expect(trace.routing).toEqual([expect.objectContaining({ status: "failed", failure: "cancelled" })]);
  });

  it("deleting the session ends its processes and its token (contract 3, Local chat)", async () => {
    await using it = await withBee(["!sleep 60"]);
    await it.send("hello");
    while (await it.count() === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await it.app.call(`DELETE /api/local/sessions/${it.session.id}`);
    expect(await it.app.call("GET /api/system/executions")).toMatchObject([
      { status: "failed", failure: "cancelled" },
    ]);
  });

  it("masks its token in its reply and in its error [SEC-3]", async () => {
    await using it = await withBee([
      `!echo '{"reply": "I am '"$SVC_TOKEN"', and glad"}'`,
      `!echo "refused: $SVC_TOKEN" >&2; exit 3`,
    ], { max_attempts: 1 });
    await it.send("who are you?");
    await it.app.settle();
    await it.send("and now?");
    await it.app.settle();
    expect(await replies(it.app, it.session.id)).toEqual([
      expect.stringMatching(/^I am \*{100,}, and glad$/),
      // Only the end of the error output is kept, and so only the end of the token.
      expect.stringMatching(/exit code 3: \*{100,}\. Send it again/),
    ]);
    const runs = JSON.stringify(await it.app.call("GET /api/system/executions"));
    expect(runs).not.toContain("eyJ");
  });

  it("a message with a mention waits while the coordinator routes an earlier message of its conversation", async () => {
    await using it = await withBee([
      `!while [ ! -e "$FAKE_BEE/go" ]; do sleep 0.05; done; echo '{"reply": "done"}'`,
    ]);
    const first = await it.send("hello");
    await waitUntil("it thinks", async () => await it.count() === 1);
    const second = await it.send("@Ada hello");
    await it.app.until("message.feeding", 2);
    expect(await it.app.db.read("select id from inbound_message where status = 'feeding' order by id"))
      .toEqual([{ id: first }, { id: second }]);
    await Deno.writeTextFile(join(it.folder, "go"), "");
    await it.app.settle(30_000);
    const routed = await it.app.db.read(
      "select message_id from journal where kind = 'message.routed' order by seq",
    );
    expect(routed).toEqual([{ message_id: first }, { message_id: second }]);
  });

  it("an orderly stop releases the message, and the next start routes it as the first attempt", async () => {
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    await Deno.writeTextFile(join(dataDir, "answer-1"), "!sleep 60");
    await Deno.writeTextFile(
      join(dataDir, "answer-2"),
      '{"tasks": [{"worker": "Ada", "instruction": "write"}]}',
    );
    const thinker = { kind: "command", command: FAKE_BEE, env: { FAKE_BEE: dataDir } };
    const config = { bee: { engine: "thinker" }, engines: { default: "echo", thinker } };
    const first = await openApp({ dataDir, config });
    await first.call("POST /api/workers", { name: "Ada" });
    const { id } = await first.call("POST /api/local/sessions");
    const { message_id } = await first.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
    while (!await Deno.stat(join(dataDir, "prompt-1")).then(() => true, () => false)) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await first.stop();
    await using second = await openApp({ dataDir, config });
    await second.settle();
    const { message, routing } = await second.call(`GET /api/messages/${message_id}/trace`);
    expect(message).toMatchObject({ status: "bee_processed", attempt: 1 });
    expect(routing.map((one: { failure: string }) => one.failure)).toEqual(["server_lost", ""]);
    expect(await replies(second, id)).toEqual(["write"]);
    await second.stop();
    await Deno.remove(dataDir, { recursive: true });
  });

  it("its token can read everything, writes tasks and messages as the bee, and ends with the run (contract 2)", async () => {
    await using it = await withBee([
      `!"$SVC_CTL" ctl worker list -q > "$FAKE_BEE/workers"; echo hold on | "$SVC_CTL" ctl message send --message-id "$SVC_MESSAGE_ID" --stdin > /dev/null
       "$SVC_CTL" ctl worker create -n Evil 2> "$FAKE_BEE/refused"; echo $? >> "$FAKE_BEE/refused"; echo "$SVC_TOKEN" > "$FAKE_BEE/token"
       echo '{"reply": "done"}'`,
    ]);
    await it.send("hello");
    await it.app.settle(30_000);
    expect(await replies(it.app, it.session.id)).toEqual(["hold on", "done"]);
    const kept = (name: string) => Deno.readTextFile(join(it.folder, name));
    expect((await kept("workers")).trim().split("\n")).toHaveLength(2);
    expect(await kept("refused")).toMatch(/lacks the scope write:workers\..*\n4\n$/);
    const dead = await it.app.send("GET /api/workers", undefined, {
      authorization: `Bearer ${(await kept("token")).trim()}`,
    });
    expect(dead.status).toBe(401);
    const said = await it.app.call("GET /api/messages/outbound?source_type=bee");
    expect(said).toHaveLength(2);
  });
});

describe("concurrent messages for the coordinator (contract 4.4)", () => {
  const THINKS_UNTIL_GO = `!while [ ! -e "$FAKE_BEE/go" ]; do sleep 0.05; done; echo '{"reply": "done"}'`;

  async function running({ app }: Awaited<ReturnType<typeof withBee>>): Promise<number> {
    return (await app.db.read("select 1 as one from bee_run where status = 'running'")).length;
  }

  /** Runs another round of the coordinator's stage. */
  async function another({ app }: Awaited<ReturnType<typeof withBee>>): Promise<void> {
    const stage = app.server.stages.find(({ name }) => name === "bee");
    const { rounds = 0 } = stage ?? {};
    stage?.wake();
    await waitUntil("another round", () => (stage?.rounds ?? 0) > rounds);
  }

  it("are all routed by four concurrent runs", async () => {
    await using it = await withBee([THINKS_UNTIL_GO]);
    await feed(it.app, 7, Date.now());
    await another(it);
    await waitUntil("four think", async () => await running(it) >= 4);
    await another(it);
    expect(await running(it)).toBe(4);
    await Deno.writeTextFile(join(it.folder, "go"), "");
    await it.app.until("message.routed", 7, 30_000);
    expect(await it.app.db.read("select distinct attempt from inbound_message")).toEqual([{ attempt: 1 }]);
  });

  it("left by an earlier process are each checked immediately while they wait for a run", async () => {
    await using it = await withBee([THINKS_UNTIL_GO]);
    let looks = 0;
    const write = it.app.db.write.bind(it.app.db);
    it.app.db.write = (statements) => {
      looks += statements.filter(({ sql }) => sql.includes("set attempt = attempt - 1")).length;
      return write(statements);
    };
    await feed(it.app, 7, 1);
    await another(it);
    await waitUntil("four think", async () => await running(it) >= 4);
    for (let round = 0; round < 3; round++) await another(it);
    expect(looks).toBe(7);
    await Deno.writeTextFile(join(it.folder, "go"), "");
    await it.app.until("message.routed", 7, 30_000);
  });
});

it("waiting retries do not delay other conversations", async () => {
  await using app = await openApp({ inMemory: true });
  const now = Date.now();
  const rows = Array.from({ length: 250 }, (_, n) => ({
    id: createId(),
    session_key: `other:${String(n).padStart(3, "0")}`,
    platform: "other",
    platform_message_id: `${n}`,
    content: "hello",
    status: "feeding",
    due_at: n === 249 ? now : now + 60_000,
    received_at: now,
  }));
  await app.db.write(insertRows("inbound_message", rows));
  app.server.parts.wakeups.notify(WAKEUP.bee);
  await app.until("message.routed");
  expect(await app.db.read("select session_key from inbound_message where status <> 'feeding'")).toEqual([
    { session_key: "other:249" },
  ]);
});

it("left by an earlier process are routed one at a time: a crash takes no attempt from the others [BYT-4]", async () => {
  await using app = await openApp({ inMemory: true });
  const steps: string[] = [];
  const write = app.db.write.bind(app.db);
  app.db.write = (statements) => {
    if (statements.some(({ sql }) => sql.includes("set attempt = ?"))) steps.push("count");
    if (statements.some(({ sql }) => sql.includes("set status = 'bee_processed'"))) steps.push("route");
    return write(statements);
  };
  await feed(app, 3, 1);
  app.server.parts.wakeups.notify(WAKEUP.bee);
  await app.until("message.routed", 3);
  expect(steps).toEqual(["count", "route", "count", "route", "count", "route"]);
});

it("the key cannot be rotated while the coordinator runs, so its token stays valid (contract 8.16)", async () => {
  await using it = await withBee([{ reply: "hm" }, "!sleep 60"]);
  await it.send("@Ada hello");
  await it.send("first");
  await it.app.settle();
  await it.app.call("POST /api/system/rotate-key", {});
  const before = await it.count();
  await it.send("second");
  await waitUntil("it thinks", async () => await it.count() > before);
  expect((await it.app.send("POST /api/system/rotate-key", {})).status).toBe(409);
});
