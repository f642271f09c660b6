import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";
import { endRun } from "../../../src/run/ending.ts";
import { findTask } from "../../../src/store/work/task.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const START = Date.parse("2026-01-05T08:00:00Z");
const MINUTE_MS = 60_000;

/** Runs end as the instruction says, and engine failures are selected by a word. */
const WORDS = {
  kind: "command",
  command: "sh",
  args: [
    "-c",
    'read -r word; case $word in fail) echo broken >&2; exit 3 ;; wait) sleep 300 ;; esac; echo "$word"',
  ],
  shell: [],
};

async function open(more: Json = {}) {
  const clock = new TestClock(new Date(START).toISOString());
  const config = { engines: { default: "words", words: WORDS }, limits: { stop_grace: "200ms" } };
  const app = await openApp({ clock, config });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const task = await app.call("POST /api/tasks", {
    message_id: "m",
    worker_id: worker.id,
    instruction: "ok",
    type: "scheduled",
    cron: "*/10 * * * *",
    ...more,
  });
  return { app, clock, worker, task, get: (): Promise<Json> => app.call(`GET /api/tasks/${task.id}`) };
}

/** Moves the clock to the next time and waits for the end of its run. */
async function pass(app: App, clock: TestClock, ended: number) {
  clock.advance(10 * MINUTE_MS);
  await waitUntil("the run ends", async () => {
    const row = await app.db.first<Json>(
      "select count(*) as count from execution where completed_at is not null",
    );
    return row.count >= ended;
  });
  await app.settle();
}

const occurrences = async (app: App) =>
  (await app.db.read<Json>("select status from occurrence order by task_id, run_no")).map(({ status }) =>
    status
  );

describe("the end of a schedule (contract 15)", () => {
  it("until: the last due time runs, nothing runs later, and the schedule is completed", async () => {
    const { app, clock, get } = await open({ until: START + 20 * MINUTE_MS });
    await using _ = app;
    await pass(app, clock, 1);
    expect(await get()).toMatchObject({ status: "scheduled", next_run_at: START + 20 * MINUTE_MS });
    await pass(app, clock, 2);
    expect(await get()).toMatchObject({
      status: "completed",
      reason: "no time is left until its end",
      next_run_at: null,
      runs_ended: 2,
    });
  });

  it("max_runs: the schedule completes after this many runs of any outcome, including manual runs", async () => {
    const { app, clock, task, get } = await open({
      max_runs: 3,
      instruction: "fail",
      pause_after_failures: 3,
    });
    await using _ = app;
    await pass(app, clock, 1);
    await app.call(`POST /api/tasks/${task.id}/run`, {});
    await app.settle();
    expect(await get()).toMatchObject({ status: "scheduled", runs_ended: 2 });
    expect((await app.send(`PUT /api/tasks/${task.id}`, { max_runs: 2 })).status).toBe(400);
    await pass(app, clock, 3);
    expect(await get()).toMatchObject({
      status: "completed",
      reason: "it has run 3 times",
      runs_ended: 3,
      paused: false,
      next_run_at: null,
    });
    clock.advance(60 * MINUTE_MS);
    await app.settle();
    expect(await occurrences(app)).toEqual(["failed", "failed", "failed"]);
  });

  it("max_runs: drops a time that waited for the last run", async () => {
    const { app, clock, get } = await open({ max_runs: 1, overlap: "replace", instruction: "wait" });
    await using _ = app;
    clock.advance(10 * MINUTE_MS);
    await app.until("execution.started");
    clock.advance(10 * MINUTE_MS);
    await app.until("task.completed");
    await app.settle();
    expect(await get()).toMatchObject({ status: "completed", last_status: "cancelled", runs_ended: 1 });
    expect(await occurrences(app)).toEqual(["cancelled"]);
  });
});

describe("pause_after_failures (contract 15)", () => {
  it("pauses after this many failures in a row with a notice in its conversation and the inbox; resuming resets the count", async () => {
    const { app, clock, worker, task, get } = await open({
      name: "Report",
      instruction: "ok",
      pause_after_failures: 2,
    });
    await using _ = app;
    const { id: session } = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await app.call(`PUT /api/tasks/${task.id}`, { deliver_to: `local:${session}`, instruction: "fail" });
    await pass(app, clock, 1);
    expect(await get()).toMatchObject({
      failures_in_row: 1,
      paused: false,
      last_error: expect.stringContaining("exit_code"),
    });
    await app.call(`PUT /api/tasks/${task.id}`, { instruction: "ok" });
    await pass(app, clock, 2);
    expect(await get()).toMatchObject({ failures_in_row: 0, last_status: "completed" });
    await app.call(`PUT /api/tasks/${task.id}`, { instruction: "fail" });
    await pass(app, clock, 3);
    await pass(app, clock, 4);
    const paused = await get();
    expect(paused).toMatchObject({
      paused: true,
      status: "scheduled",
      failures_in_row: 2,
      next_run_at: null,
      reason: expect.stringMatching(/^paused: its last 2 runs failed; the latest: exit_code/),
    });
    const [item] = (await app.call("GET /api/inbox")).filter(({ kind }: Json) => kind === "schedule_paused");
    expect(item).toMatchObject({
      title: "Report",
      detail: paused.reason,
      task_id: task.id,
      worker_name: "Ada",
    });
    const history = await app.call(`GET /api/local/sessions/${session}/messages`);
    const said = history.map(({ content }: Json) => content);
    // The target conversation gets the results and failures of all four runs, and the pause.
    expect(said.filter((text: string) => text === "ok").length).toBe(1);
    expect(said.filter((text: string) => text.includes("Ada failed: exit_code")).length).toBe(3);
    expect(said.filter((text: string) => text.startsWith('The schedule "Report" is paused')).length).toBe(1);
    clock.advance(60 * MINUTE_MS);
    await app.settle();
    expect((await occurrences(app)).length).toBe(4);
    await app.call(`PUT /api/tasks/${task.id}`, { paused: false });
    expect(await get()).toMatchObject({ failures_in_row: 0, paused: false, reason: "" });
    expect((await app.call("GET /api/inbox")).map(({ kind }: Json) => kind)).not.toContain("schedule_paused");
  });

  it.each(["cancelled", "server_lost", "rate_limited", "budget"])(
    "a run that was %s says nothing about the schedule",
    async (failure) => {
      const { app, clock, task, get } = await open({ instruction: "wait", pause_after_failures: 1 });
      await using _ = app;
      clock.advance(10 * MINUTE_MS);
      await app.until("execution.started");
      const { execution_id } = await get();
      if (failure === "cancelled") await app.call(`POST /api/executions/${execution_id}/cancel`, {});
      else if (failure === "budget") {
        await app.server.executor.stopRun(execution_id, "the budget x is used up");
      } else {
        // Only a provider or a crash causes these failures, so the test stores their outcomes.
        const stored = await storedEnd(app, task.id, failure as "server_lost");
        expect(stored).toBe(true);
        await app.server.executor.interrupt(execution_id);
      }
      await waitUntil("it goes on", async () => (await get()).status === "scheduled");
      expect(await get()).toMatchObject({
        paused: false,
        failures_in_row: 0,
        runs_ended: 1,
        last_status: failure === "cancelled" ? "cancelled" : "failed",
      });
      expect(await occurrences(app)).toEqual([failure === "cancelled" ? "cancelled" : "failed"]);
      expect(await app.call("GET /api/inbox")).not.toContainEqual(
        expect.objectContaining({ kind: "schedule_paused" }),
      );
    },
  );

  it("a blocked run has not failed: it waits, and the schedule skips later times", async () => {
    const { app, clock, worker, get } = await open({ pause_after_failures: 1 });
    await using _ = app;
    await app.call("POST /api/budgets", {
      ...{ name: "b", target: `worker:${worker.id}`, unit: "runs", limit: 1, period: "total" },
    });
    await pass(app, clock, 1);
    clock.advance(10 * MINUTE_MS);
    await waitUntil("it is held", async () => (await get()).held_by !== null);
    clock.advance(10 * MINUTE_MS);
    await app.until("task.skipped");
    expect(await get()).toMatchObject({
      paused: false,
      failures_in_row: 0,
      status: "pending",
      runs_ended: 1,
    });
    expect(await occurrences(app)).toEqual(["completed", "pending"]);
  });
});

it("queue cancel cancels the waiting occurrences of its tasks (contract 15)", async () => {
  const { app, worker, task } = await open();
  await using _ = app;
  const body = { message_id: "m", instruction: "wait", type: "scheduled", cron: "0 0 1 1 *" };
  const second = await app.call("POST /api/tasks", { ...body, worker_id: worker.id });
  const other = await app.call("POST /api/workers", { name: "Bob", paused: true });
  const foreign = await app.call("POST /api/tasks", { ...body, worker_id: other.id });
  await app.call(`PUT /api/workers/${worker.id}`, { paused: true });
  const ids = [task.id, second.id, foreign.id];
  for (const id of ids) await app.call(`POST /api/tasks/${id}/run`, {});
  const filter = { worker_id: worker.id, status: "pending" };
  await app.call("POST /api/queue/cancel", { filter, expected: 2 });
  const rows = await app.db.read<Json>(
    "select task_id, status, ended_at is not null as ended from occurrence",
  );
  expect(ids.map((id) => rows.find(({ task_id }) => task_id === id))).toMatchObject([
    { status: "cancelled", ended: 1 },
    { status: "cancelled", ended: 1 },
    { status: "pending", ended: 0 },
  ]);
});

async function storedEnd(
  app: App,
  taskId: string,
  failure: "server_lost" | "rate_limited",
): Promise<boolean> {
  const task = await findTask(app.db, taskId);
  const run = await app.db.first<Json>("select *, id as execution_id from execution where task_id = ?", [
    taskId,
  ]);
  const end = {
    ...{ status: "failed" as const, session_id: "", result: "", error: "x", failure, exit_code: null },
    usage: { input_tokens: null, output_tokens: null, cost_usd: null },
    met: null,
  };
  const rules = { defaultZone: "UTC", maxAttempts: 1 };
  return (await app.db.write(endRun(run, end, task, rules, app.server.parts.clock.now()))).won;
}
