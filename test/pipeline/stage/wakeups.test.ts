import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { WAKEUP, Wakeups } from "../../../src/base/wakeups.ts";
import { createId } from "../../../src/base/id.ts";
import { type App, openApp, type TestSettings } from "../../harness/service/app.ts";
import { insertRows } from "../../harness/model/counters.ts";

const FAKE_BEE = new URL("../../harness/fakes/fake_bee.sh", import.meta.url).pathname;

/** Records which stages were woken. */
class RecordedWakeups extends Wakeups {
  readonly #sent: string[] = [];

  override notify(key: string): void {
    this.#sent.push(key);
    super.notify(key);
  }

  /** Returns the wakeups since the last call. */
  take(): Set<string> {
    return new Set(this.#sent.splice(0));
  }
}

/** A service with a paused worker, so that only the test causes work. */
async function withPausedWorker(config: TestSettings = {}) {
  const wakeups = new RecordedWakeups();
  const app = await openApp({ inMemory: true, wakeups, config });
  const worker = await app.call("POST /api/workers", { name: "Ada", paused: true });
  const task = (type: string, more: object = {}) =>
    app.call("POST /api/tasks", { message_id: "m", worker_id: worker.id, instruction: "x", type, ...more });
  return { app, wakeups, worker, task, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() };
}

/** Inserts a message of another platform, so that the outbox delivers the replies of its conversation. */
async function foreignMessage(app: App): Promise<string> {
  const id = createId();
  const now = Date.now();
  await app.db.write(insertRows("inbound_message", [{
    id,
    session_key: "other:1",
    platform: "other",
    platform_message_id: "1",
    content: "hello",
    status: "bee_processed",
    due_at: now,
    received_at: now,
  }]));
  return id;
}

describe("new work wakes its stage (architecture, sentence 1)", () => {
  it("a message wakes the intake, and a fed message wakes the coordinator", async () => {
    await using it = await withPausedWorker();
    const session = await it.app.call("POST /api/local/sessions");
    it.wakeups.take();
    // Intake routes a small message immediately by the rules.
    const content = "x".repeat(5_000);
    await it.app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
    await it.app.until("message.routed");
    expect([...it.wakeups.take()]).toEqual(expect.arrayContaining([WAKEUP.intake, WAKEUP.bee]));
  });

  it("a due task wakes the dispatcher, a timed one the scheduler, and an ended one no stage", async () => {
    await using it = await withPausedWorker();
    it.wakeups.take();
    await it.task("immediate");
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.dispatcher]);
    await it.task("countdown", { scheduled_at: Date.now() + 60_000 });
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.scheduler]);
    const { id } = await it.task("scheduled", { cron: "0 0 1 1 *" });
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.scheduler]);
    await it.task("scheduled", { cron: "61 0 1 1 *" });
    expect(stagesOf(it.wakeups)).toEqual([]);
    await it.app.call(`POST /api/tasks/${id}/run`);
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.dispatcher]);
  });

  it("a countdown that is due wakes the dispatcher", async () => {
    await using it = await withPausedWorker();
    const { id } = await it.task("countdown", { scheduled_at: Date.now() + 60_000 });
    await it.app.db.write([{ sql: "update task set next_run_at = 1 where id = ?", args: [id] }]);
    it.wakeups.take();
    await it.app.until("task.due");
    expect(stagesOf(it.wakeups)).toContain(WAKEUP.dispatcher);
  });

  it("a worker that is resumed or changes its engine wakes the dispatcher", async () => {
    await using it = await withPausedWorker();
    it.wakeups.take();
    await it.app.call(`PUT /api/workers/${it.worker.id}`, { description: "writes" });
    expect(stagesOf(it.wakeups)).toEqual([]);
    await it.app.call(`PUT /api/workers/${it.worker.id}`, { engine: "echo" });
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.dispatcher]);
    await it.app.call(`PUT /api/workers/${it.worker.id}`, { paused: false });
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.dispatcher]);
  });

  it("a reply to another platform wakes the outbox, also after the deletion of a worker", async () => {
    await using it = await withPausedWorker();
    const message_id = await foreignMessage(it.app);
    it.wakeups.take();
    await it.app.call("POST /api/messages", { message_id, content: "soon" });
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.outbox]);
    await it.task("immediate", { message_id });
    it.wakeups.take();
    await it.app.call(`DELETE /api/workers/${it.worker.id}`);
    // The worker's gate checks whether it is still wanted, and tasks that waited for the worker's may be due.
    expect(stagesOf(it.wakeups)).toEqual([WAKEUP.gate, WAKEUP.dispatcher, WAKEUP.outbox]);
  });

  it("the end of a run wakes the outbox for its reply", async () => {
    await using it = await withPausedWorker();
    const message_id = await foreignMessage(it.app);
    await it.task("immediate", { message_id });
    it.wakeups.take();
    await it.app.call(`PUT /api/workers/${it.worker.id}`, { paused: false });
    await it.app.until("execution.completed");
    expect(stagesOf(it.wakeups)).toContain(WAKEUP.outbox);
  });

  it("a countdown that the coordinator plans wakes the scheduler", async () => {
    const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
    const later = {
      worker: "Ada",
      instruction: "x",
      type: "countdown",
      scheduled_at: Date.now() + 3_600_000,
    };
    await Deno.writeTextFile(join(folder, "answer-1"), JSON.stringify({ reply: "", tasks: [later] }));
    const thinker = { kind: "command", command: FAKE_BEE, env: { FAKE_BEE: folder } };
    await using it = await withPausedWorker({
      bee: { engine: "thinker" },
      engines: { default: "echo", thinker },
    });
    const session = await it.app.call("POST /api/local/sessions");
    it.wakeups.take();
    await it.app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "hello" });
    await it.app.until("task.created");
    expect(stagesOf(it.wakeups)).toContain(WAKEUP.scheduler);
    await Deno.remove(folder, { recursive: true });
  });
});

/** Returns the stages that were woken since the last call. */
function stagesOf(wakeups: RecordedWakeups): string[] {
  const all: readonly string[] = Object.values(WAKEUP);
  return [...wakeups.take()].filter((name) => all.includes(name) && name !== WAKEUP.journal);
}
