import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findMarked } from "../../../src/engine/process/isolation.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { FAKE_AGENT } from "../../harness/fakes/agents.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const ENGINES = {
  default: "fake",
  fake: { kind: "command", command: FAKE_AGENT, shell: [], env: { MY_API_KEY: "hush-hush-hush-hush" } },
};
// The long run: SVC_TEST_FLOOD_MB=300.
const FLOOD_MB = Number(Deno.env.get("SVC_TEST_FLOOD_MB") ?? 60);
const YEARLY = { type: "scheduled", cron: "0 0 1 1 *" };

async function open(more: Json = {}) {
  const app = await openApp({ config: { engines: ENGINES, limits: { stop_grace: "200ms" } }, ...more });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const post = (gate: Json, more: Json = {}): Promise<Json> =>
    app.call("POST /api/tasks", {
      message_id: "m",
      worker_id: worker.id,
      instruction: "say hi",
      gate,
      ...YEARLY,
      ...more,
    });
  return { app, worker, post };
}

const sh = (line: string, more: Json = {}) => ({ command: ["sh", "-c", line], ...more });

const occurrences = (app: App) =>
  app.db.read<Json>(
    "select run_no, status, gate_exit, error, execution_id, run_id, ended_at is not null as ended from occurrence order by run_no",
  );

const run = async (app: App, id: string) => {
  await app.call(`POST /api/tasks/${id}/run`, {});
  await app.settle(60_000);
  return await app.call(`GET /api/tasks/${id}`);
};

const kinds = async (app: App) =>
  (await app.db.read<{ kind: string }>("select kind from journal where task_id <> '' order by seq"))
    .map(({ kind }) => kind);

describe("gates (contract 15)", () => {
  it("exit 0 runs the task with the output after the instruction; the gate sees neither token nor keys", async () => {
    const { app, worker, post } = await open();
    await using _ = app;
    const line =
      'env >env; pwd >dir; echo "2 new mails"; echo aside >&2; test -z "$SVC_TOKEN$MY_API_KEY" && test -n "$SVC_RUN_ID"';
    const task = await post(sh(line));
    expect(await run(app, task.id)).toMatchObject({
      status: "scheduled",
      last_status: "completed",
      runs_ended: 1,
      reason: "",
    });
    const { execution_id } = await app.call(`GET /api/tasks/${task.id}`);
    const execution = await app.call(`GET /api/executions/${execution_id}`);
    expect(execution).toMatchObject({ status: "completed", result: expect.stringContaining("hi") });
    expect(execution.instruction).toMatch(/^say hi\n\n\["sh","-c",.*printed:\n\n2 new mails\n$/s);
    expect(await Deno.readTextFile(join(worker.work_dir, "env"))).not.toMatch(/MY_API_KEY|SVC_TOKEN/);
    expect((await Deno.readTextFile(join(worker.work_dir, "dir"))).trim()).toBe(
      await Deno.realPath(worker.work_dir),
    );
    expect(await occurrences(app)).toMatchObject([
      { status: "completed", gate_exit: 0, execution_id, ended: 1 },
    ]);
    expect((await app.db.read("select * from reservation")).length).toBe(0);
  });

  it("exit 1 skips the task: no execution, no counted run, and the schedule continues", async () => {
    const { app, post } = await open();
    await using _ = app;
    const task = await post(sh("exit 1"), { max_runs: 1 });
    expect(await run(app, task.id)).toMatchObject({
      status: "scheduled",
      reason: "its gate skipped the latest run",
      execution_id: null,
      run_count: 0,
      runs_ended: 0,
      last_status: "",
      failures_in_row: 0,
      next_run_at: task.next_run_at,
    });
    expect(await app.call("GET /api/executions")).toEqual([]);
    expect(await occurrences(app)).toMatchObject([{ status: "gated", gate_exit: 1, ended: 1 }]);
    expect(await kinds(app)).toEqual(["task.created", "task.due", "task.gated", "task.rescheduled"]);
    expect((await app.db.read("select * from reservation")).length).toBe(0);
  });

  it("exit 1 makes a waiting conversation idle", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    const { app, worker, post } = await open({ clock });
    await using _ = app;
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    const content = { content: "hello" };
    const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, content);
    await app.settle(60_000);
    const before = await app.db.read("select 1 from journal where kind = 'session.idle'");
    const at = { type: "countdown", scheduled_at: clock.now() + 60_000, cron: undefined };
    await post(sh("exit 1"), { ...at, message_id });
    clock.advance(60_000);
    await app.until("task.gated", 1, 30_000);
    await app.settle();
    const after = await app.db.read("select session_key from journal where kind = 'session.idle'");
    expect(after).toHaveLength(before.length + 1);
    expect(after.at(-1)).toEqual({ session_key: `local:${session.id}` });
  });

  it.each([
    ["says 3", sh("echo wrong; exit 3"), 3, /^gate_failed: exit code 3: wrong$/, 5],
    [
      "is missing",
      { command: ["no-such-program"] },
      null,
      /could not be started: no-such-program was not/,
      5,
    ],
    ["hangs and forks", sh("sleep 300 & sleep 300", { timeout_ms: 300 }), null, /not end within 0.3 s/, 10],
    ["floods", sh(`yes | head -c ${FLOOD_MB}000000; exit 2`), 2, /^gate_failed: exit code 2: [y\n]+$/, 30],
    ["kills what is above it", sh("kill -9 $PPID 0; kill -9 -1; sleep 5"), 137, /exit code 137/, 15],
  ])(
    "one that %s is a failure of the schedule, and its processes are gone [CMD-1]",
    async (_what, gate, exit, error, seconds) => {
      const { app, post } = await open();
      await using _ = app;
      const before = performance.now();
      const task = await post(gate, { pause_after_failures: 1 });
      const after = await run(app, task.id);
      expect(performance.now() - before).toBeLessThan(seconds * 4_000);
      expect(after).toMatchObject({
        status: "scheduled",
        paused: true,
        last_status: "failed",
        last_error: expect.stringMatching(error),
        failures_in_row: 1,
        runs_ended: 1,
        execution_id: null,
      });
      expect(after.last_error.length).toBeLessThan(1_000);
      const [row] = await occurrences(app);
      expect(row).toMatchObject({ status: "failed", gate_exit: exit, ended: 1 });
      expect(await findMarked(new Set([row.run_id]))).toEqual([]);
      expect(await kinds(app)).toEqual(
        ["task.created", "task.due", "task.gate_failed", "task.rescheduled", "schedule.paused"],
      );
    },
    120_000,
  );

  it(`passes 64 KiB of ${FLOOD_MB} MB of output to the agent [CMD-1]`, async () => {
    const { app, post } = await open();
    await using _ = app;
    const task = await post(sh(`yes | head -c ${FLOOD_MB}000000`));
    const { execution_id } = await run(app, task.id);
    const { instruction } = await app.call(`GET /api/executions/${execution_id}`);
    expect(instruction.length).toBeGreaterThan(65_536);
    expect(instruction.length).toBeLessThan(66_000);
    expect(instruction).toMatch(/\[cut after 64 KiB\]$/);
  }, 120_000);

  it("occupies the work directory and the slot while it runs, and is visible", async () => {
    const { app, worker, post } = await open({
      config: { engines: ENGINES, limits: { max_concurrent_runs: 1 } },
    });
    await using _ = app;
    const other = await app.call("POST /api/workers", { name: "Bob" });
    const task = await post(sh("until [ -e go ]; do sleep 0.02; done; exit 1"));
    await app.call(`POST /api/tasks/${task.id}/run`, {});
    await waitUntil("its gate runs", async () => (await occurrences(app))[0]?.status === "gating");
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({
      status: "pending",
      reason: "its gate runs",
    });
    const now = { message_id: "m", instruction: "say hi", type: "immediate" };
    for (const { id } of [worker, other]) await app.call("POST /api/tasks", { ...now, worker_id: id });
    const rounds = app.server.dispatcher.stage.rounds;
    await waitUntil("the dispatcher has looked", () => app.server.dispatcher.stage.rounds > rounds);
    expect(await app.call("GET /api/executions")).toEqual([]);
    // A request for a run returns the run in progress.
    expect(await app.call(`POST /api/tasks/${task.id}/run`, {})).toMatchObject({ run_no: 1 });
    await Deno.writeTextFile(join(worker.work_dir, "go"), "");
    await app.settle();
    expect((await app.call("GET /api/executions")).length).toBe(2);
  });

  it.each(["cancel", "queue", "session", "worker"])(
    "a cancelled task ends its gate: %s [CMD-1]",
    async (how) => {
      const { app, worker, post } = await open();
      await using _ = app;
      const task = await post(sh("sleep 300 & sleep 300"));
      await app.call(`POST /api/tasks/${task.id}/run`, {});
      await waitUntil("its gate runs", async () => (await occurrences(app))[0]?.status === "gating");
      const [{ run_id }] = await occurrences(app);
      if (how === "cancel") await app.call(`POST /api/tasks/${task.id}/cancel`, {});
      if (how === "queue") await app.call("POST /api/queue/cancel", { filter: {}, expected: 1 });
      if (how === "session") {
        await app.call(`DELETE /api/contexts?session_key=${encodeURIComponent(task.session_key)}`);
      }
      if (how === "worker") await app.call(`DELETE /api/workers/${worker.id}`);
      expect((await app.call(`GET /api/tasks/${task.id}`)).status).toBe("cancelled");
      await app.settle(30_000);
      expect(await findMarked(new Set([run_id]))).toEqual([]);
      expect(await occurrences(app)).toMatchObject([{ status: "cancelled", gate_exit: null, ended: 1 }]);
      expect(await app.call("GET /api/executions")).toEqual([]);
      expect((await app.db.read("select * from reservation")).length).toBe(0);
    },
    60_000,
  );

  it(
    "an orderly stop repeats the gate at the next start without using up an attempt, but not a passed gate [CMD-3]",
    async () => {
      const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
      const first = await open({ dataDir });
      const task = await first.post(
        sh('echo asked >>asked; until [ -e go ]; do sleep 0.02; done; echo "the news"'),
        {
          instruction: `until ${dataDir}/end`,
        },
      );
      const asked = async () => {
        const text = await Deno.readTextFile(join(first.worker.work_dir, "asked")).catch(() => "");
        return text.split("\n").length - 1;
      };
      await first.app.call(`POST /api/tasks/${task.id}/run`, {});
      await waitUntil("its gate runs", async () => await asked() === 1);
      await first.app.stop();
      const second = await openApp({ dataDir, config: { engines: ENGINES } });
      await waitUntil("its gate runs", async () => await asked() === 2);
      await Deno.writeTextFile(join(first.worker.work_dir, "go"), "");
      await waitUntil(
        "its run goes on",
        async () => (await second.call("GET /api/executions?status=running")).length === 1,
      );
      await second.stop();
      await using third = await openApp({ dataDir, config: { engines: ENGINES } });
      await Deno.writeTextFile(join(dataDir, "end"), "");
      await third.settle(30_000);
      expect(await asked()).toBe(2);
      const after = await third.call(`GET /api/tasks/${task.id}`);
      expect(after).toMatchObject({
        status: "scheduled",
        last_status: "completed",
        runs_ended: 1,
        attempt: 0,
      });
      const { instruction } = await third.call(`GET /api/executions/${after.execution_id}`);
      expect(instruction).toMatch(/the news\n$/);
      expect(await occurrences(third)).toMatchObject([{ status: "completed", gate_exit: 0 }]);
      await third.stop();
      await Deno.remove(dataDir, { recursive: true });
    },
    90_000,
  );

  it("a task that gets another worker without a gate during its gate starts after that gate", async () => {
    const { app, worker, post } = await open();
    await using _ = app;
    const other = await app.call("POST /api/workers", { name: "Bob" });
    const task = await post(sh("until [ -e go ]; do sleep 0.02; done"));
    await app.call(`POST /api/tasks/${task.id}/run`, {});
    await waitUntil("its gate runs", async () => (await occurrences(app))[0]?.status === "gating");
    await app.call(`PUT /api/tasks/${task.id}`, { worker_id: other.id, gate: null });
    const { stage } = app.server.dispatcher;
    const { rounds } = stage;
    stage.wake();
    await waitUntil("the dispatcher has looked", () => stage.rounds > rounds && stage.idle);
    expect(await app.call("GET /api/executions")).toEqual([]);
    await Deno.writeTextFile(join(worker.work_dir, "go"), "");
    await app.settle();
    expect(await app.call("GET /api/executions")).toMatchObject([{
      worker_id: other.id,
      status: "completed",
    }]);
    expect(await occurrences(app)).toMatchObject([{ status: "completed", gate_exit: null }]);
  });

  it("works for scheduled and manual runs, and its outcome ends a countdown", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    const { app, post } = await open({ clock });
    await using _ = app;
    const tasks: Json[] = [];
    for (const code of [0, 1, 2]) {
      tasks.push(
        await post(sh(`exit ${code}`), {
          type: "countdown",
          scheduled_at: clock.now() + 60_000,
          cron: undefined,
        }),
      );
    }
    clock.advance(60_000);
    await app.until("task.gate_failed", 1, 30_000);
    await app.settle();
    const ended = await Promise.all(tasks.map(({ id }) => app.call(`GET /api/tasks/${id}`)));
    expect(ended.map(({ status, reason }) => [status, reason])).toEqual([
      ["completed", ""],
      ["completed", "its gate skipped it"],
      ["failed", "gate_failed: exit code 2"],
    ]);
    expect((await app.call("GET /api/executions")).length).toBe(1);
  });
});
