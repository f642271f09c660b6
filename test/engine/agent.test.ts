import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, type AppOptions, openApp } from "../harness/service/app.ts";

const FAKE_CLAUDE = new URL("../harness/fakes/fake_claude.sh", import.meta.url).pathname;

function openFake(engine: object = {}, options: AppOptions = {}): Promise<App> {
  return openApp({
    ...options,
    config: {
      limits: { stop_grace: "300ms" },
      ...options.config,
      engines: { default: "claude", claude: { command: FAKE_CLAUDE, permissions: "full", ...engine } },
    },
  });
}

/** Opens a conversation with one worker; each call sends a message and waits for the end of the run. */
async function conversation(app: App, worker: object = {}) {
  const made = await app.call("POST /api/workers", { name: "Ada", ...worker });
  const session = await app.call("POST /api/local/sessions", { worker_id: made.id });
  const say = async (content: string) => {
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
    await app.settle();
    const [execution] = await app.call("GET /api/executions");
    const log: string = await app.call(`GET /api/executions/${execution.id}/logs`);
    return { execution, log };
  };
  const contexts = () => app.call(`GET /api/contexts?session_key=local:${session.id}`);
  return { worker: made, session, say, contexts };
}

describe("agent: outcomes (contract 3, facts, engines 2)", () => {
  it("takes the answer, session and usage from the engine's events", async () => {
    await using app = await openFake();
    const { say } = await conversation(app);
    const { execution, log } = await say("ok now");
    expect(execution).toMatchObject({
      status: "completed",
      result: "done now",
      usage: { input_tokens: 1, output_tokens: 2, cost_usd: 0.5 },
      session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect(log).toMatch(
      /^\S+Z \[session [0-9a-f-]{36}\]\n\S+Z hello\n\S+Z \[used 1 tokens in, 2 tokens out, 0.5 USD\]\n/m,
    );
  });

  it.each([
    ["silent", "exit_code", /crashed: it ended without a final event/],
    ["half", "exit_code", /crashed: it ended without a final event/],
    ["garbage", "exit_code", /crashed: it broke/],
    ["speechless", "engine_error", /crashed: it said and did nothing/],
  ])("%s is a failure with a name, for every exit code", async (mode, failure, words) => {
    await using app = await openFake();
    const { say } = await conversation(app);
    const { execution } = await say(mode);
    expect(execution).toMatchObject({ status: "failed", failure });
    expect(execution.error).toMatch(words);
    const replies = await app.call("GET /api/executions");
    expect(replies).toHaveLength(1);
  });

  it("an agent that used tools needs no text, and its final event overrides its exit code", async () => {
    await using app = await openFake();
    const { say } = await conversation(app);
    expect((await say("acted")).execution).toMatchObject({ status: "completed", result: "" });
    expect((await say("finish-then-fail")).execution).toMatchObject({
      status: "completed",
      result: "fine",
      exit_code: 9,
    });
    expect((await say("ask")).execution).toMatchObject({ status: "completed", result: "no terminal" });
  });

  it("ends a process that stays after its final event, and keeps its result", async () => {
    await using app = await openFake();
    const { say } = await conversation(app);
    const started = performance.now();
    expect((await say("linger")).execution).toMatchObject({ status: "completed", result: "done early" });
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  it("a time limit overrides the final event, and the outcome keeps the output so far", async () => {
    await using idle = await openFake({ idle_timeout: "500ms" });
    expect((await (await conversation(idle)).say("partial-hang")).execution).toMatchObject({
      failure: "idle_timeout",
      result: "so far",
      session_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    await using late = await openFake({ timeout: "500ms" });
    expect((await (await conversation(late)).say("hang")).execution).toMatchObject({ failure: "timeout" });
  });

  it("skips a line of 20 MB without keeping it in memory, and continues", async () => {
    await using app = await openFake();
    const { say } = await conversation(app);
    await say("ok");
    const before = Deno.memoryUsage().rss;
    let highest = 0;
    const watch = setInterval(() => highest = Math.max(highest, Deno.memoryUsage().rss), 5);
    const { execution, log } = await say("long-line 20000000");
    clearInterval(watch);
    expect(execution).toMatchObject({ status: "completed", result: "long" });
    expect(log).toMatch(/\[skipped a line of 20\.0 MB on stdout; it starts with \{"type":"user"/);
    expect(highest - before).toBeLessThan(60e6);
    expect((await Deno.stat(eventsOf(app, execution.id))).size).toBeLessThan(17e6);
  });
});

function eventsOf(app: App, id: string): string {
  return join(app.dataDir, "logs", id.slice(-2), `${id}.jsonl`);
}

describe("agent: logs (contract 3, Execution)", () => {
  it("keeps the raw events next to the log, without the run's keys [SEC-2, SEC-3]", async () => {
    await using app = await openFake({ env: { ANTHROPIC_API_KEY: "sk-canary-0123456789" } });
    const { say } = await conversation(app);
    const { execution } = await say("key");
    const events: string = await app.call(`GET /api/executions/${execution.id}/logs?raw=true`);
    expect(events.trim().split("\n").map((line) => JSON.parse(line).type)).toEqual(["system", "result"]);
    expect(events).not.toContain("canary");
    expect(await app.call(`GET /api/executions/${execution.id}/logs`)).not.toContain("canary");
  });

  it("creates no events file for engines without events", async () => {
    await using app = await openApp();
    const { say } = await conversation(app);
    const { execution } = await say("hello");
    const reply = await app.send(`GET /api/executions/${execution.id}/logs?raw=true`);
    expect(reply).toMatchObject({ status: 200, body: "" });
  });
});

describe("agent: sessions (contract 3, Session context)", () => {
  it("continues the session of its conversation, and reports the cost of each run", async () => {
    await using app = await openFake();
    const { say, contexts, worker } = await conversation(app);
    const first = (await say("cost 0.5")).execution;
    const second = (await say("cost 0.75")).execution;
    expect(second.session_id).toBe(first.session_id);
    expect([first, second].map((run) => run.usage.cost_usd)).toEqual([0.5, 0.25]);
    expect(await contexts()).toMatchObject([{
      session_id: first.session_id,
      worker_id: worker.id,
      engine: "claude",
    }]);
    // A total that restarted from zero is the run's own.
    expect((await say("cost 0.1")).execution.usage.cost_usd).toBe(0.1);
  });

  it("starts a new session once when the engine has lost it, with the recent messages", async () => {
    await using app = await openFake();
    const { say, worker, contexts } = await conversation(app, { memory: "be kind" });
    await say("forget");
    const { execution, log } = await say("prompt");
    expect(execution).toMatchObject({ status: "completed", result: "0" });
    expect(log).toMatch(/\[the engine lost the session; a new one starts with the earlier conversation\]/);
    expect(await contexts()).toMatchObject([{ session_id: execution.session_id }]);
    const prompt = await Deno.readTextFile(join(worker.work_dir, "prompt.txt"));
    const told = prompt.slice(prompt.indexOf("# The conversation so far"), prompt.indexOf("# The message"));
    expect(told).toMatch(/user: forget\n\[\S+\] answer: forgotten\n/);
    expect(prompt).toMatch(/be kind/);
    expect(prompt.trimEnd().endsWith("prompt")).toBe(true);
  });

  it("resumes a session whose id is taken, and starts a new one when the engine opens another", async () => {
    await using app = await openFake();
    const { say } = await conversation(app);
    expect((await say("exists")).execution).toMatchObject({ status: "completed", result: "resumed" });
    const { execution } = await say("stray");
    expect(execution).toMatchObject({ status: "completed", result: "told: 1" });
    expect(execution.session_id).not.toMatch(/^0000/);
  });

  it("keeps the session of a run that failed or was cancelled", async () => {
    await using app = await openFake({ idle_timeout: "500ms" });
    const { say } = await conversation(app);
    const first = (await say("hang")).execution;
    expect(first).toMatchObject({ failure: "idle_timeout" });
    expect((await say("ok")).execution.session_id).toBe(first.session_id);
  });

  it("does not store a context that was cleared during its run", async () => {
    await using app = await openFake();
    const { say, contexts, session, worker } = await conversation(app);
    const first = (await say("ok")).execution;
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "linger" });
    await app.until("execution.started", 2);
    await app.call(`DELETE /api/contexts/${worker.id}?session_key=local:${session.id}`);
    await app.settle();
    expect(await contexts()).toEqual([]);
    expect((await say("ok")).execution.session_id).not.toBe(first.session_id);
  });

  it("lets only immediate tasks use and store a context", async () => {
    await using app = await openFake();
    const { say, contexts, worker } = await conversation(app);
    const first = (await say("ok")).execution;
    const [message] = await app.db.read<{ id: string }>("select id from inbound_message");
    const task = await app.call("POST /api/tasks", {
      message_id: message?.id,
      worker_id: worker.id,
      instruction: "ok scheduled",
      type: "scheduled",
      cron: "0 0 1 1 *",
    });
    await app.call(`POST /api/tasks/${task.id}/run`);
    await app.settle();
    const [scheduled] = await app.call("GET /api/executions");
    expect(scheduled).toMatchObject({ status: "completed", result: "done scheduled" });
    expect(scheduled.session_id).not.toBe(first.session_id);
    expect(await contexts()).toMatchObject([{ session_id: first.session_id }]);
  });

  it("does not use the session of another engine", async () => {
    await using app = await openApp({
      config: {
        engines: {
          default: "claude",
          claude: { command: FAKE_CLAUDE },
          other: { kind: "claude", command: FAKE_CLAUDE },
        },
      },
    });
    const { say, worker, contexts } = await conversation(app);
    const first = (await say("ok")).execution;
    await app.call(`PUT /api/workers/${worker.id}`, { engine: "other" });
    expect(await contexts()).toEqual([]);
    const { execution } = await say("ok");
    expect(execution).toMatchObject({ status: "completed", engine: "other" });
    expect(execution.session_id).not.toBe(first.session_id);
  });

  it("keeps each worker's state separate unless it is shared, and removes it with the worker", async () => {
    await using app = await openFake();
    const { say, worker } = await conversation(app);
    const { execution } = await say("ok");
    const state = join(app.dataDir, "state", worker.id, "claude");
    expect([...Deno.readDirSync(state)].map((entry) => entry.name)).toEqual([execution.session_id]);
    await app.call(`DELETE /api/workers/${worker.id}`);
    await expect(Deno.stat(state)).rejects.toThrow();
  });
});

describe("agent: settings (contract 3, Worker; contract 7)", () => {
  it.each([
    ["claude", "--output-format=json", "--output-format=json"],
    ["claude", "--model x -p", "-p"],
    ["codex", "exec --json", "--json"],
    ["gemini", "--outputFormat text", "--outputFormat"],
    ["goose", "-n name", "-n"],
    ["qwen", "--model x -- more", "--"],
  ])("refuses an argument that would break the protocol: %s %s", async (engine, args, flag) => {
    await using app = await openApp();
    const reply = await app.send("POST /api/workers", { name: "Ada", engine_args: { [engine]: args } });
    expect(reply.status).toBe(400);
    expect(reply.body.errors).toMatchObject([{ path: `engine_args.${engine}` }]);
    expect(reply.body.detail).toContain(`cannot contain ${flag}:`);
  });

  it("shows version, login and problems in the worker's status", async () => {
    const status = async (engine: object) => {
      await using app = await openFake(engine);
      const { id } = await app.call("POST /api/workers", { name: "Ada" });
      return await app.call(`GET /api/workers/${id}/status`);
    };
    const key = { ANTHROPIC_API_KEY: "x" };
    expect(await status({ env: key })).toMatchObject({
      usable: true,
      version: "2.1.329",
      detail: FAKE_CLAUDE,
    });
    expect(await status({ env: { HOME: "/nonexistent" } })).toMatchObject({
      usable: false,
      version: "2.1.329",
      detail: expect.stringMatching(/no login was found; make a token with: claude setup-token/),
    });
    expect(await status({ command: "no-such-claude" })).toMatchObject({
      usable: false,
      version: "",
      detail: expect.stringMatching(
        /not found on PATH; correct engines\.\w+\.command$/,
      ),
    });
    const home = await Deno.makeTempDir({ prefix: "svc-test-home-" });
    await Deno.mkdir(join(home, ".claude"));
    await Deno.writeTextFile(join(home, ".claude", ".credentials.json"), "{}");
    expect(await status({ env: { HOME: home } })).toMatchObject({
      usable: false,
      detail: expect.stringContaining(`To use the one in ${home}/.claude, set state: shared`),
    });
    expect(await status({ env: { HOME: home }, state: "shared" })).toMatchObject({ usable: true });
    await Deno.remove(home, { recursive: true });
    const old = await Deno.makeTempFile({ prefix: "svc-test-old-" });
    await Deno.writeTextFile(old, "#!/bin/sh\necho 2.0.77\n");
    await Deno.chmod(old, 0o755);
    expect(await status({ command: old, env: key })).toMatchObject({
      usable: false,
      version: "2.0.77",
      detail: expect.stringMatching(/is version 2\.0\.77; at least 2\.1 is needed$/),
    });
    await Deno.remove(old);
    expect(await status({ command: "/bin/true", env: key })).toMatchObject({
      usable: false,
      detail: "/bin/true does not report its version. Check that it runs.",
    });
  });
});
