import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";

const HOUR_MS = 3_600_000;

// A coordinator that runs while a file `thinking` exists, and touches `thought` in each run.
const BEE = `#!/bin/sh
cat > /dev/null
echo >> "$DIR/thought"
while [ -e "$DIR/thinking" ]; do sleep 0.05; done
echo '{"reply": "on it", "tasks": [{"worker": "Ada", "instruction": "a"}]}'
`;

async function withBee(clock: TestClock) {
  const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
  const command = join(folder, "bee.sh");
  await Deno.writeTextFile(command, BEE, { mode: 0o755 });
  const thinker = { kind: "command", command, env: { DIR: folder }, timeout: "9h", idle_timeout: "9h" };
  const app = await openApp({
    clock,
    config: { bee: { engine: "thinker", timeout: "9h" }, engines: { default: "echo", thinker } },
  });
  await app.call("POST /api/workers", { name: "Ada" });
  await app.call("POST /api/workers", { name: "Grace" });
  const session = await app.call("POST /api/local/sessions");
  const budget = (body: object) =>
    app.call("POST /api/budgets", { name: "Bee", target: "engine:thinker", ...body });
  const send = async (content: string): Promise<string> =>
    (await app.call(`POST /api/local/sessions/${session.id}/messages`, { content })).message_id;
  return {
    app,
    session,
    budget,
    send,
    file: (name: string) => join(folder, name),
    thoughts: async () => (await Deno.readTextFile(join(folder, "thought")).catch(() => "")).length,
    async [Symbol.asyncDispose]() {
      await Deno.remove(join(folder, "thinking")).catch(() => {});
      await app[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

describe("runs of the coordinator (contract 14)", () => {
  it("count, and a used-up budget delays the message with one notice until it resumes", async () => {
    const clock = new TestClock();
    await using it = await withBee(clock);
    const { app, session } = it;
    const { id } = await it.budget({ unit: "runs", limit: 1, period: "5h" });
    await it.send("first");
    await app.settle();
    expect(await app.call(`GET /api/budgets/${id}`)).toMatchObject({ used: 1, reserved: 0, state: "hard" });
    const held = await it.send("second");
    const inbound = async () => (await app.call(`GET /api/messages/${held}/trace`)).message;
    await waitUntil("the message waits", async () => (await inbound()).error !== "");
    expect(await inbound()).toMatchObject({
      status: "feeding",
      error: expect.stringMatching(/^waits: the budget "Bee" is used up: 1 of 1 run \(5h\); resumes at /),
    });
    clock.advance(HOUR_MS);
    await app.server.stages.find(({ name }) => name === "bee")?.wake();
    clock.advance(HOUR_MS);
    const told = (await app.call(`GET /api/local/sessions/${session.id}/messages`))
      .filter(({ content }: { content: string }) => content.startsWith("This message has to wait: "));
    expect(told).toHaveLength(1);
    expect(await it.thoughts()).toBe(1);
    clock.advance(3 * HOUR_MS);
    await waitUntil("it is routed", async () => (await inbound()).status === "bee_processed");
    expect(await inbound()).toMatchObject({ error: "" });
    expect(await it.thoughts()).toBe(2);
    await app.settle();
  });

  it("count for half a minute at most when the database took one without an answer", async () => {
    const clock = new TestClock();
    await using it = await withBee(clock);
    const { app } = it;
    const write = app.db.write.bind(app.db);
    let isLost = true;
    app.db.write = async (statements) => {
      const written = await write(statements);
      if (!isLost || !statements.some(({ sql }) => sql.startsWith("insert into bee_run"))) return written;
      isLost = false;
      throw new Error("no answer in time");
    };
    await it.send("hello");
    await waitUntil("it is routed all the same", async () => {
      clock.advance(1_000);
      return await app.db.first("select 1 as one from journal where kind = 'message.routed'") !== null;
    });
    await app.settle();
    const open = async () =>
      (await app.db.read("select 1 as one from bee_run join reservation on execution_id = id")).length;
    expect(await open()).toBe(1);
    await waitUntil("it is given up", async () => {
      clock.advance(30_000);
      return await open() === 0;
    });
    expect(await app.db.read("select status, failure from bee_run order by id")).toEqual([
      { status: "failed", failure: "server_lost" },
      { status: "completed", failure: "" },
    ]);
  });

  it("reserve their expected usage, and a budget that stops ends them", async () => {
    const clock = new TestClock();
    await using it = await withBee(clock);
    const { app } = it;
    const { id } = await it.budget({ unit: "minutes", limit: 10, period: "24h", action: "stop" });
    await Deno.writeTextFile(it.file("thinking"), "");
    const sent = await it.send("think");
    await waitUntil("it thinks", async () => await it.thoughts() === 1);
    clock.advance(60_000);
    expect(await app.call(`GET /api/budgets/${id}`)).toMatchObject({ used: 1 });
    clock.advance(9 * 60_000);
    await app.until("message.failed");
    const { routing, message } = await app.call(`GET /api/messages/${sent}/trace`);
    const failure = routing[0].failure;
    expect([failure, message.status]).toEqual(["budget", "failed"]);
    expect(await app.call(`GET /api/budgets/${id}`)).toMatchObject({ used: 10, reserved: 0, state: "hard" });
  });
});
