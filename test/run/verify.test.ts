import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import { buildFakeEngines, FAKE_AGENT } from "../harness/fakes/agents.ts";
import { startRun } from "../harness/service/run.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const ENGINES = { default: "fake", fake: { kind: "command", command: FAKE_AGENT, shell: [] } };

/** Runs one task with this check. Returns its execution and log. */
async function checkedBy(app: App, verify: Json, instruction = "say hi") {
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const body = { message_id: "m", worker_id: worker.id, instruction, type: "immediate", verify };
  const task = await app.call("POST /api/tasks", body);
  await app.settle(60_000);
  const { execution_id } = await app.call(`GET /api/tasks/${task.id}`);
  const execution = await app.call(`GET /api/executions/${execution_id}`);
  return { worker, execution, log: String(await app.call(`GET /api/executions/${execution_id}/logs`)) };
}

const sh = (line: string, more: Json = {}) => ({ command: ["sh", "-c", line], ...more });

describe("verify (contract 13) [CMD-1]", () => {
  it("exit 0 completes the run, and the check sees neither token nor keys", async () => {
    await using app = await openApp({
      config: {
        engines: { ...ENGINES, fake: { ...ENGINES.fake, env: { MY_API_KEY: "hush-hush-hush-hush" } } },
      },
    });
    const { execution, log } = await checkedBy(
      app,
      sh('env; test -z "$SVC_TOKEN$MY_API_KEY" && test -n "$SVC_RUN_ID"'),
    );
    expect(execution).toMatchObject({
      status: "completed",
      failure: "",
      verify: { status: "passed", attempts: 1 },
    });
    expect(log).toContain("[check 1: exit code 0]");
    expect(log).not.toMatch(/(MY_API_KEY|SVC_TOKEN)=/);
  });

  it("accepts a whole path for the program or the shell before it", async () => {
    await using app = await openApp({
      config: { engines: { ...ENGINES, fake: { ...ENGINES.fake, shell: ["/bin/sh"] } } },
    });
    const { execution, log } = await checkedBy(app, { command: ["-c", "exit 0"], attempts: 0 });
    expect(log).toContain("[check 1: exit code 0]");
    expect(execution).toMatchObject({ status: "completed", verify: { status: "passed", attempts: 1 } });
  });

  it("a failed check goes back with the end of its output, and the second answer is checked again", async () => {
    await using app = await openApp({ config: { engines: ENGINES } });
    const { execution, log } = await checkedBy(
      app,
      sh("test -e seen || { touch seen; echo nothing here; exit 3; }"),
    );
    expect(execution).toMatchObject({ status: "completed", verify: { status: "passed", attempts: 2 } });
    const marks = [...log.matchAll(/\[(check [^\]]*|its output goes back[^\]]*)\]/g)].map(([, words]) =>
      words
    );
    expect(marks).toEqual([
      "check 1: exit code 3",
      "its output goes back to the agent, 1 of 2",
      "check 2: exit code 0",
    ]);
  });

  it.each([
    ["fails", sh("echo wrong; exit 5", { attempts: 1 }), 2, /failed 2 times; the last time exit code 5/],
    [
      "is missing",
      { command: ["no-such-program"], attempts: 0 },
      1,
      /could not be started: no-such-program was not found/,
    ],
    [
      "hangs and forks",
      sh("sleep 300 & sleep 300", { attempts: 0, timeout_ms: 300 }),
      1,
      /did not end within 0.3 s/,
    ],
    ["floods", sh("yes | head -c 300000000; exit 1", { attempts: 0 }), 1, /exit code 1/],
    [
      "kills what is above it",
      sh("kill -9 $PPID 0; kill -9 -1; sleep 5", { attempts: 0 }),
      1,
      /failed 1 times/,
    ],
  ])(
    "a check that %s ends like a run, and its outcome is stored [CMD-1]",
    async (_what, verify, attempts, error) => {
      await using app = await openApp({ config: { engines: ENGINES, limits: { max_log_bytes: 1_000_000 } } });
      const { execution, log } = await checkedBy(app, verify);
      // The log keeps its limit, whatever the check prints.
      expect(log.length).toBeLessThan(1_100_000);
      expect(execution).toMatchObject({
        status: "failed",
        failure: "verify_failed",
        error: expect.stringMatching(error),
        verify: { status: "failed", attempts },
        result: expect.stringContaining("hi"),
      });
      expect(Deno.statSync(join(app.dataDir, "svc.db")).isFile).toBe(true);
    },
    60_000,
  );

  it("skips the check of a failed run", async () => {
    await using app = await openApp({ config: { engines: ENGINES } });
    const { execution } = await checkedBy(app, sh("exit 0"), "exit 4");
    expect(execution).toMatchObject({ failure: "exit_code", verify: { status: null, attempts: 0 } });
  });

  it("an engine of kind command without engines.<name>.shell accepts none", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const body = { message_id: "m", worker_id: worker.id, instruction: "say hi", type: "immediate" };
    const reply = await app.send("POST /api/tasks", { ...body, verify: sh("true") });
    expect([reply.status, reply.body.detail]).toEqual([400, expect.stringContaining("engines.fake.shell")]);
  });

  it("a task inherits its worker's check, and may override it", async () => {
    await using app = await openApp({ config: { engines: ENGINES } });
    const verify = sh("echo by the worker; exit 0");
    const worker = await app.call("POST /api/workers", { name: "Ada", verify });
    expect(worker.verify).toEqual({ ...verify, timeout_ms: 600_000, attempts: 2 });
    expect((await app.call(`PUT /api/workers/${worker.id}`, worker)).verify).toEqual(worker.verify);
    const run = async (more: Json) => {
      const body = { message_id: "m", worker_id: worker.id, instruction: "say hi", type: "immediate" };
      const task = await app.call("POST /api/tasks", { ...body, ...more });
      await app.settle(60_000);
      const { execution_id } = await app.call(`GET /api/tasks/${task.id}`);
      const execution = await app.call(`GET /api/executions/${execution_id}`);
      return { execution, log: String(await app.call(`GET /api/executions/${execution_id}/logs`)) };
    };
    const plain = await run({});
    expect(plain.execution.verify).toEqual({ status: "passed", attempts: 1 });
    expect(plain.log).toContain("by the worker");
    const own = await run({ verify: sh("echo by the task; exit 0") });
    expect(own.log).toContain("by the task");
    expect(own.log).not.toContain("by the worker");
    await app.call(`PUT /api/workers/${worker.id}`, { verify: null });
    expect((await run({})).execution.verify).toEqual({ status: null, attempts: 0 });
  });

  it("a worker's check needs a fitting engine: kind command has to define its shell", async () => {
    await using app = await openApp({ config: { engines: { ...buildFakeEngines(), other: ENGINES.fake } } });
    const verify = sh("true");
    expect((await app.send("POST /api/workers", { name: "Ada", verify })).status).toBe(400);
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "other", verify });
    const reply = await app.send(`PUT /api/workers/${worker.id}`, { engine: "fake" });
    expect([reply.status, reply.body.detail]).toEqual([400, expect.stringContaining("engines.fake.shell")]);
    await app.call(`PUT /api/workers/${worker.id}`, { engine: "fake", verify: null });
  });

  it("no agent may set one, whatever its scopes [CMD-2]", async () => {
    await using app = await openApp({ config: { engines: ENGINES } });
    const run = await startRun(app, ["*:*"]);
    const body = { message_id: run.messageId, worker_id: run.workerId, instruction: "x" };
    const cron = { ...body, type: "scheduled", cron: "0 0 1 1 *" };
    const own = await app.call("POST /api/tasks", cron, run.headers);
    const made = await app.call("POST /api/tasks", { ...cron, verify: sh("true") });
    const gated = await app.call("POST /api/tasks", { ...cron, gate: sh("true") });
    const tries: [string, Json][] = [
      ["POST /api/tasks", { ...body, type: "immediate", verify: sh("true") }],
      ["POST /api/tasks", { ...cron, verify: sh("true") }],
      ["POST /api/tasks", { ...cron, gate: sh("true") }],
      [`PUT /api/tasks/${own.id}`, { gate: sh("true") }],
      [`PUT /api/tasks/${gated.id}`, { gate: null }],
      ["POST /api/workers", { name: "Eve", verify: sh("true") }],
      [`PUT /api/workers/${run.workerId}`, { verify: sh("true") }],
      [`PUT /api/tasks/${own.id}`, { verify: sh("true") }],
      [`PUT /api/tasks/${made.id}`, { verify: null }],
      [`PUT /api/tasks/${own.id}`, { deliver_to: "local:elsewhere" }],
    ];
    for (const [route, change] of tries) {
      expect([route, (await app.send(route, change, run.headers)).status]).toEqual([route, 403]);
    }
    expect((await app.call(`PUT /api/tasks/${own.id}`, { name: "mine" }, run.headers)).name).toBe("mine");
  });
});
