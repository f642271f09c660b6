import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { countBytes } from "../../src/base/bytes.ts";
import { cutResult, RESULT_MAX_BYTES } from "../../src/engine/result.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { waitUntil } from "../harness/wait.ts";

async function chat(app: App, content: string, worker: object = {}) {
  const made = await app.call("POST /api/workers", { name: `w${crypto.randomUUID()}`, ...worker });
  const session = await app.call("POST /api/local/sessions", { worker_id: made.id });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
  await app.settle();
  const [execution] = await app.call(`GET /api/workers/${made.id}/executions`);
  const replies = (await app.call(`GET /api/local/sessions/${session.id}/messages`)).slice(1);
  const log: string = await app.call(`GET /api/executions/${execution.id}/logs`);
  const task = await app.db.first("select status, reason from task where id = ?", [execution.task_id]);
  return { worker: made, session, execution, replies, log, task };
}

describe("executor: outcomes (contract 3, Execution; contract 4.6, contract 7)", () => {
  it("stdout is the reply, stderr goes to the log, and exit 0 is success", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { execution, replies, log, task } = await chat(app, "both");
    expect(execution).toMatchObject({
      status: "completed",
      result: "out",
      failure: "",
      exit_code: 0,
      attempt: 1,
    });
    expect(replies).toMatchObject([{ role: "bee", content: "out" }]);
    expect(log).toMatch(/ err\n/);
    expect(task).toMatchObject({ status: "completed", reason: "" });
  });

  it("a failing program causes a system message with execution and reason, and no retry [DSP-13]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { execution, replies, task } = await chat(app, "exit 3");
    expect(execution).toMatchObject({
      status: "failed",
      failure: "exit_code",
      exit_code: 3,
      error: "exit code 3: about to exit 3",
    });
    expect(replies).toHaveLength(1);
    expect(replies[0].content).toContain(`exit code 3: about to exit 3 (execution ${execution.id}).`);
    expect(task).toMatchObject({ status: "failed", reason: "exit_code: exit code 3: about to exit 3" });
    expect(await app.call("GET /api/executions")).toHaveLength(1);
    expect(await app.db.first("select source_type from outbound_message")).toMatchObject({
      source_type: "system",
    });
  });

  it("a program that succeeds without output still sends a reply", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { execution, replies } = await chat(app, "silent");
    expect(execution).toMatchObject({ status: "completed", result: "" });
    expect(replies[0].content).toMatch(/finished without a text/);
  });

  it("a program that cannot be started fails once with spawn_failed and the reason [CHD-8]", async () => {
    const folder = await Deno.makeTempDir({ prefix: "svc-test-launch-" });
    await Deno.writeTextFile(join(folder, "plain"), "#!/bin/sh\n", { mode: 0o644 });
    const broken = (command: string) => ({ kind: "command", command });
    await using app = await openApp({
      config: {
        engines: {
          ...buildFakeEngines(),
          none: broken("/no/such/program"),
          unknown: broken("surely-no-such-program"),
          folder: broken(folder),
          plain: broken(join(folder, "plain")),
        },
      },
    });
    const cases: [object, RegExp][] = [
      [{ engine: "none" }, /does not exist/],
      [{ engine: "unknown" }, /not found on PATH/],
      [{ engine: "folder" }, /is not a file/],
      [{ engine: "plain" }, /is not executable/],
    ];
    for (const [worker, words] of cases) {
      const { execution, replies, task } = await chat(app, "ok", worker);
      expect(execution, JSON.stringify(worker)).toMatchObject({
        status: "failed",
        failure: "spawn_failed",
        exit_code: null,
      });
      expect(execution.error).toMatch(words);
      expect(replies).toHaveLength(1);
      expect(task).toMatchObject({ status: "failed" });
    }
    expect((await app.send("GET /readyz")).status).toBe(200);
    await Deno.remove(folder, { recursive: true });
  });

  it("a run whose log cannot be opened leaves no private files", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { logs, runs } = app.server.parts.paths;
    await Deno.writeTextFile(logs, "in the way");
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const task = { message_id: "m", worker_id: worker.id, instruction: "ok", type: "immediate" };
    await app.call("POST /api/tasks", task);
    await app.settle();
    expect(await app.call("GET /api/executions")).toMatchObject([{ failure: "spawn_failed" }]);
    const listDirs = () => Array.fromAsync(Deno.readDir(runs)).catch(() => []);
    await waitUntil("its directory is gone", async () => (await listDirs()).length === 0);
  });

  it("a run over its time ends with timeout, a silent one with idle_timeout [CHD-9]", async () => {
    await using late = await openApp({ config: { engines: buildFakeEngines({ timeout: "300ms" }) } });
    expect((await chat(late, "sleep 60")).execution).toMatchObject({
      failure: "timeout",
      error: expect.stringContaining("0.3 s"),
    });
    await using idle = await openApp({ config: { engines: buildFakeEngines({ idle_timeout: "300ms" }) } });
    const { execution, log } = await chat(idle, "sleep 60");
    expect(execution).toMatchObject({ failure: "idle_timeout" });
    expect(log).toMatch(/\[failed: idle_timeout/);
  });

  it("passes a run its environment and context, and no secret of the service (contract 4.8) [CHD-10]", async () => {
    Deno.env.set("SVC_TEST_CANARY", "canary");
    Deno.env.set("PASSED_ON", "yes");
    await using app = await openApp({
      config: {
        engines: {
          default: "fake",
          fake: {
            ...buildFakeEngines().fake as object,
            env: { OWN: "1" },
            pass_env: ["PASSED_ON", "SVC_TEST_CANARY"],
          },
        },
      },
    });
    const { worker, session, execution } = await chat(app, "env-dump");
    const env = Object.fromEntries(
      execution.result.split("\n").map((line: string) => line.split(/=(.*)/).slice(0, 2)),
    );
    expect(env).toMatchObject({
      OWN: "1",
      PASSED_ON: "yes",
      NO_COLOR: "1",
      TERM: "dumb",
      LANG: "C.UTF-8",
      SVC_URL: app.url,
      SVC_EXECUTION_ID: execution.id,
      SVC_TASK_ID: execution.task_id,
      SVC_WORKER_ID: worker.id,
      SVC_SESSION_KEY: `local:${session.id}`,
      SVC_MESSAGE_ID: execution.message_id,
      SVC_CTL: join(app.server.parts.paths.bin, "svc"),
    });
    expect(env.PATH.startsWith(`${app.server.parts.paths.bin}:`)).toBe(true);
    expect(env.SVC_RUN_ID).toMatch(/^[0-9a-f-]{36}$/);
    const known =
      /^(PATH|HOME|SHELL|LANG|TERM|TZ|TMPDIR|NO_COLOR|OWN|PASSED_ON|PWD|OLDPWD|SHLVL|_|SVC_(URL|TOKEN|CTL|RUN_ID|EXECUTION_ID|TASK_ID|WORKER_ID|SESSION_KEY|MESSAGE_ID|CONTEXT_FILE))$/;
    expect(Object.keys(env).filter((name) => !known.test(name))).toEqual([]);
    await expect(Deno.stat(env.SVC_CONTEXT_FILE)).rejects.toThrow();
  });

  it("masks the run's token in its log and its reply", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { log } = await chat(app, "env-dump-stderr");
    expect(log).toMatch(/SVC_TOKEN=\*{50,}\n/);
    expect(log).not.toMatch(/eyJ/);
  });

  it("passes a command engine all other data in SVC_CONTEXT_FILE (contract 7)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { execution, session, worker } = await chat(app, "context", {
      memory: "be kind",
      constraints: "no rm",
      description: "d",
    });
    expect(JSON.parse(execution.result)).toEqual({
      worker: {
        id: worker.id,
        name: worker.name,
        description: "d",
        memory: "be kind",
        constraints: "no rm",
        work_dir: worker.work_dir,
      },
      task: { id: execution.task_id, type: "immediate", attempt: 1, instruction: "context" },
      message: { id: execution.message_id, session_key: `local:${session.id}`, attachments: [] },
      memory: { global: {}, session: {} },
      conversation: [{ role: "user", content: "context", ts: expect.any(Number) }],
    });
  });

  it("appends a worker's engine arguments to the engine's own", async () => {
    const config = {
      engines: { default: "printer", printer: { kind: "command", command: "printf", args: ["%s|"] } },
    };
    await using app = await openApp({ config });
    const { execution } = await chat(app, "x", { engine_args: { printer: "-a 'b c'" } });
    expect(execution.result).toBe("-a|b c|");
  });

  it("runs in the work directory, and cuts an endless result", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { worker, execution } = await chat(app, "pwd");
    expect(execution.result).toBe(worker.work_dir);
    const flood = await chat(app, "flood 3000000");
    expect(countBytes(flood.execution.result)).toBeLessThanOrEqual(RESULT_MAX_BYTES);
    // The service cuts the result of a runner, too.
    expect(cutResult(flood.execution.result)).toBe(flood.execution.result);
    expect(flood.execution.result).toMatch(/\[cut: 3000000 bytes in all, the log has more\]$/);
    // A character at the limit is dropped.
    const text = await chat(app, "euros 100000");
    expect(text.execution.result).toMatch(/^€+\n\[cut: 300000 bytes in all, the log has more\]$/);
  });
});
