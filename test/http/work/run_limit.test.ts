import fc from "fast-check";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  RUN_CHANGES_MAX,
  RUN_MEMORY_MAX_BYTES,
  RUN_MESSAGES_MAX,
  RUN_TASKS_MAX,
  RUN_WORKERS_MAX,
} from "../../../src/api/call/run_limit.ts";
import { WORKER_SCOPES_DEFAULT } from "../../../src/domain/call/scope.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { startRun } from "../../harness/service/run.ts";

const AGENT = `#!/bin/sh
read -r mode
"$SVC_CTL" ctl task create --message-id "$SVC_MESSAGE_ID" --worker-id "$SVC_WORKER_ID" --instruction again --type immediate 2>&1
echo "exit $?"
`;

async function limited(app: App): Promise<{ execution_id: string; thing: string; most: number }[]> {
  const events = await app.call("GET /api/events?kind=execution.limited", undefined, {
    accept: "application/json",
  });
  return events.map((event: { execution_id: string; data: object }) => ({
    execution_id: event.execution_id,
    ...event.data,
  }));
}

describe("limits of one run [SCP-7]", () => {
  it("a run creates a limited number of workers, and makes a limited number of changes [SCP-7]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["write:workers", ...WORKER_SCOPES_DEFAULT]);
    for (let no = 0; no < RUN_WORKERS_MAX; no++) {
      const made = await app.send("POST /api/workers", { name: `Made ${no}` }, run.headers);
      expect(made.status).toBe(201);
    }
    expect((await app.send("POST /api/workers", { name: "More" }, run.headers)).status).toBe(409);
    const { runLimits } = app.server.parts;
    const caller = { run: { execution_id: run.executionId, attempt: 1 } } as never;
    // A refused worker above counts as a request.
    await runLimits.take({ caller }, "changes", RUN_CHANGES_MAX - RUN_WORKERS_MAX - 2);
    const entry = { scope: run.sessionKey, key: "k" };
    expect((await app.send("PUT /api/memory/entry", { ...entry, value: "" }, run.headers)).status).toBe(
      200,
    );
    const path = `/api/memory/entry?scope=${encodeURIComponent(entry.scope)}&key=k`;
    expect((await app.send(`DELETE ${path}`, undefined, run.headers)).status).toBe(409);
    expect((await app.send(`GET ${path}`, undefined, run.headers)).status).toBe(200);
    expect((await limited(app)).map(({ thing }) => thing).sort()).toEqual(["changes", "workers"]);
  });

  it("a run creates a limited number of tasks, without an effect on people and other runs", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["write:tasks"]);
    const other = await startRun(app, ["write:tasks"], "Other");
    // The worker is paused, so that no task runs.
    const idle = await app.call("POST /api/workers", { name: "Idle", paused: true });
    const make = (by: typeof run) => {
      const body = { message_id: by.messageId, worker_id: idle.id, instruction: "x", type: "immediate" };
      return app.send("POST /api/tasks", body, by.headers);
    };
    const statuses = await Promise.all(
      Array.from({ length: RUN_TASKS_MAX + 5 }, async () => (await make(run)).status),
    );
    expect(statuses.filter((status) => status === 201)).toHaveLength(RUN_TASKS_MAX);
    const refused = await make(run);
    expect(refused).toMatchObject({
      status: 409,
      body: {
        code: "conflict",
        detail:
          `Cannot continue: one run can create at most ${RUN_TASKS_MAX} tasks. Leave the rest to a person.`,
      },
    });
    expect((await make(other)).status).toBe(201);
    const body = { message_id: run.messageId, worker_id: idle.id, instruction: "x", type: "immediate" };
    expect((await app.send("POST /api/tasks", body)).status).toBe(201);
    expect(await limited(app)).toEqual([{
      execution_id: run.executionId,
      thing: "tasks",
      most: RUN_TASKS_MAX,
    }]);
    const { total } = await app.call("GET /api/system/overview").then((overview) => overview.tasks);
    expect(total).toBe(2 + RUN_TASKS_MAX + 2);
  });

  it("the scheduled tasks, messages and memory of a run are limited [SCP-7]", async () => {
    const platforms = { alerts: { kind: "webhook", worker: "Agent" } as never };
    await using app = await openApp({ config: { engines: buildFakeEngines(), platforms } });
    const scopes = ["write:tasks", "write:messages", "write:chat", "write:memory", "write:hooks"];
    const run = await startRun(app, scopes);
    const tell = async (id: number) =>
      (await app.send("POST /hooks/alerts", { text: "more", id }, run.headers)).status;
    expect(await tell(1)).toBe(202);
    const say = async () =>
      (await app.send("POST /api/messages", { message_id: run.messageId, content: "more" }, run.headers))
        .status;
    for (let i = 1; i < RUN_MESSAGES_MAX; i++) expect(await say()).toBe(201);
    expect(await say()).toBe(409);
    expect(await tell(2)).toBe(409);
    const asUser = await app.send(
      `POST /api/local/sessions/${run.sessionId}/messages`,
      { content: "more" },
      run.headers,
    );
    expect(asUser.status).toBe(409);
    const remember = async (bytes: number) => {
      const entry = { scope: run.sessionKey, key: "k", value: "x".repeat(bytes - 1) };
      return (await app.send("PUT /api/memory/entry", entry, run.headers)).status;
    };
    for (let left = RUN_MEMORY_MAX_BYTES; left > 0; left -= 262_144) {
      expect(await remember(262_144)).toBe(200);
    }
    expect(await remember(2)).toBe(409);
    const things = (await limited(app)).map(({ thing }) => thing);
    expect(things).toEqual(["messages", "memory_bytes"]);
  });

  it("a schedule that a run changes or starts gets the depth of a task that the run creates [SCP-7]", async () => {
    for (const max_chain_depth of [0, 1]) {
      await using app = await openApp({
        config: { engines: buildFakeEngines(), limits: { max_chain_depth } },
      });
      const run = await startRun(app, ["write:tasks"]);
      const idle = await app.call("POST /api/workers", { name: "Idle", paused: true });
      const plan = { worker_id: idle.id, instruction: "x", type: "scheduled", cron: "0 9 * * 1" };
      const make = async () => (await app.call("POST /api/tasks", { ...plan, message_id: run.messageId })).id;
      const [changed, started] = [await make(), await make()];
      const change = (headers?: Record<string, string>) =>
        app.send(`PUT /api/tasks/${changed}`, { instruction: `y${headers === undefined}` }, headers);
      const start = (headers?: Record<string, string>) =>
        app.send(`POST /api/tasks/${started}/run`, {}, headers);
      for (const reply of [await change(run.headers), await start(run.headers)]) {
        expect([max_chain_depth, reply.status]).toEqual([
          max_chain_depth,
          max_chain_depth === 0 ? 409 : 200,
        ]);
      }
      for (const reply of [await change(), await start()]) expect(reply.status).toBe(200);
      const rows = await app.db.read("select depth from task where id in (?, ?)", [changed, started]);
      expect(rows).toEqual([{ depth: max_chain_depth }, { depth: max_chain_depth }]);
    }
  });

  it("a run does not send into a conversation of another user's schedule", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["write:tasks"]);
    const plan = { worker_id: run.workerId, instruction: "x", type: "scheduled", cron: "0 9 * * 1" };
    const elsewhere = { ...plan, message_id: run.messageId, deliver_to: "local:elsewhere" };
    const { id } = await app.call("POST /api/tasks", elsewhere);
    const change = async (body: object) => (await app.send(`PUT /api/tasks/${id}`, body, run.headers)).status;
    expect(await change({ instruction: "y" })).toBe(403);
    expect(await change({ cron: "0 8 * * 1" })).toBe(403);
    expect(await change({ name: "weekly" })).toBe(200);
    expect(await change({ instruction: "y", deliver_to: run.sessionKey })).toBe(200);
  });

  it("an agent that creates tasks for itself stops at the maximum depth, and the last run is marked [SCP-7]", async () => {
    const folder = await Deno.makeTempDir({ prefix: "svc-test-loop-" });
    const agent = join(folder, "agent.sh");
    await Deno.writeTextFile(agent, AGENT, { mode: 0o755 });
    await using app = await openApp({
      config: {
        engines: { default: "agent", agent: { kind: "command", command: agent } },
        limits: { max_chain_depth: 2 },
      },
    });
    const worker = await app.call("POST /api/workers", { name: "Loop", scopes: ["write:tasks"] });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "begin" });
    await app.settle(60_000);
    const runs = await app.call("GET /api/executions");
    expect(runs.map((one: { result: string }) => /exit (\d)/.exec(one.result)?.[1])).toEqual([
      "5",
      "0",
      "0",
    ]);
    expect(runs[0].result).toMatch(/it would be number 3 in a chain of tasks by agents/);
    expect(await limited(app)).toEqual([{ execution_id: runs[0].id, thing: "chain_depth", most: 2 }]);
    await Deno.remove(folder, { recursive: true });
  });
});

describe("rights of created workers [SCP-4]", () => {
  it("never grow along a chain of workers that create workers [SCP-4]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const own = [...WORKER_SCOPES_DEFAULT, "write:workers", "write:tasks"];
    const first = await startRun(app, own);
    for (const scopes of [["*:*"], ["read:system"], ["write:workers"], own, WORKER_SCOPES_DEFAULT]) {
      const reply = await app.send("POST /api/workers", { name: "x", scopes }, first.headers);
      expect([scopes.join(" "), reply.status]).toEqual([scopes.join(" "), 403]);
    }
    const child = await app.call("POST /api/workers", { name: "Child" }, first.headers);
    expect(child.scopes).toEqual([]);
    const body = {
      message_id: first.messageId,
      worker_id: child.id,
      instruction: "sleep 60",
      type: "immediate",
    };
    await app.call("POST /api/tasks", body, first.headers);
    await app.until("execution.started", 2);
    const run = await app.db.first<{ id: string; attempt: number }>(
      "select id, attempt from execution where worker_id = ?",
      [child.id],
    );
    const second = await app.server.parts.authority.findCaller({
      typ: "run",
      sub: `worker:${child.id}`,
      scope: "*:*",
      ver: 1,
      iat: 0,
      exp: 9e9,
      jti: "j",
      execution_id: run?.id ?? "",
      attempt: run?.attempt ?? 0,
    });
    // The scopes of the worker apply, not those of the token.
    expect(second?.caller.scopes).toEqual(WORKER_SCOPES_DEFAULT);
    expect(second?.caller.run?.depth).toBe(1);
    const put = await app.send(`PUT /api/workers/${child.id}`, { scopes: own }, first.headers);
    expect(put.status).toBe(403);
  });
});

it("scopes are accepted by their syntax on create and update, and unknown ones grant nothing [SCP-8]", async () => {
  await using app = await openApp();
  const { id } = await app.call("POST /api/workers", { name: "Ada" });
  const syntax = /^[a-z*]+:[a-z*-]+$/;
  const word = fc.stringMatching(/^[a-zA-Z*: \n\0é.-]{0,12}$/);
  const text = fc.oneof(
    fc.string({ maxLength: 120 }),
    fc.tuple(word, word).map(([verb, resource]) => `${verb}:${resource}`),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 3 }), async (scopes) => {
      const wanted = scopes.every((one) => syntax.test(one) && one.length <= 100);
      const made = await app.send("POST /api/workers", { name: "x", scopes });
      const put = await app.send(`PUT /api/workers/${id}`, { scopes });
      expect([made.status, put.status]).toEqual(wanted ? [201, 200] : [400, 400]);
      if (wanted) expect(put.body.scopes).toEqual(scopes);
    }),
    { numRuns: 150 },
  );
});
