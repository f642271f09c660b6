import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { EventKind } from "../../../src/domain/call/vocabulary.ts";
import { record } from "../../../src/store/events/journal.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp, type TestSettings } from "../../harness/service/app.ts";
import { startAskingRun } from "../../harness/fakes/asker.ts";
import { TestClock } from "../../harness/clock.ts";
import { createTask } from "../../harness/service/runner.ts";
import { waitUntil } from "../../harness/wait.ts";
import { Receiver } from "../../platform/fakes/receiver.ts";

const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;
const FAKE_CLAUDE = new URL("../../harness/fakes/fake_claude.sh", import.meta.url).pathname;
const HOUR_MS = 3_600_000;

// The id exists only after the first start, so the service is opened twice.
async function withOps(
  notices: (to: string) => unknown[],
  config: TestSettings = {},
  clock = new TestClock(),
) {
  const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
  const first = await openApp({ dataDir, clock });
  const ops = await first.call("POST /api/local/sessions", { name: "Ops" });
  const worker = await first.call("POST /api/workers", { name: "Ada" });
  await first.stop();
  const open = () =>
    openApp({
      dataDir,
      clock,
      config: { ...config, notices: notices(`local:${ops.id}`) as TestSettings["notices"] },
    });
  return {
    app: await open(),
    open,
    clock,
    worker,
    said: (app: App) => saidIn(app, ops.id),
    async [Symbol.asyncDispose]() {
      await this.app[Symbol.asyncDispose]();
      await Deno.remove(dataDir, { recursive: true });
    },
  };
}

async function saidIn(app: App, sessionId: string): Promise<string[]> {
  const messages = await app.call(`GET /api/local/sessions/${sessionId}/messages`);
  return messages.map(({ content }: { content: string }) => content);
}

/** Resolves when the notices stage has read all recorded events. */
async function looked(app: App): Promise<void> {
  const stage = app.server.stages.find(({ name }) => name === "notices");
  const rounds = stage?.rounds ?? 0;
  await waitUntil("notices are looked at", () => {
    stage?.wake();
    return (stage?.rounds ?? 0) > rounds + 1;
  });
}

function happen(app: App, kind: EventKind, data: Record<string, unknown>): Promise<unknown> {
  return app.db.write([record(app.server.parts.clock.now(), { kind, data })]);
}

describe("notices (contract 11)", () => {
  it("are sent to a conversation once per interval and worker, with the number of suppressed ones", async () => {
    await using it = await withOps((to) => [{ on: ["run.failed"], to, every: "1h" }], {
      engines: { default: "claude", claude: { command: "/nowhere" } } as never,
    });
    const { app, worker, clock } = it;
    const fail = async (id = worker.id) => {
      await createTask(app, id, "x");
      await app.settle();
    };
    for (let i = 0; i < 3; i++) await fail();
    await waitUntil("all are counted", async () => {
      const row = await app.db.first<{ suppressed_count: number }>("select suppressed_count from notice");
      return row?.suppressed_count === 2;
    });
    expect(await it.said(app)).toEqual([
      expect.stringMatching(/^Ada failed: spawn_failed, .*\(execution .*\)\.$/),
    ]);
    clock.advance(HOUR_MS);
    await fail();
    await waitUntil("it is told again", async () => (await it.said(app)).length === 2);
    expect((await it.said(app))[1]).toMatch(/\n2 similar notices since 20\d\d-.*Z\.$/);
    await fail((await app.call("POST /api/workers", { name: "Bob" })).id);
    await waitUntil("the other worker's failure is told", async () => (await it.said(app)).length === 3);
  });

  it("are sent once across restarts, and not for events older than a day", async () => {
    await using it = await withOps((to) => [{ on: ["*"], to, every: "0ms" }]);
    for (let round = 1; round <= 3; round++) {
      await happen(it.app, "system.backup_failed", { detail: `reason ${round}` });
      await waitUntil("it is told", async () => (await it.said(it.app)).length === round);
      await it.app.stop();
      it.app = await it.open();
      await looked(it.app);
    }
    expect(await it.said(it.app)).toEqual([1, 2, 3].map((n) => `The backup failed: reason ${n}.`));
    const { clock } = it;
    await Promise.all(it.app.server.stages.map((stage) => stage.stop()));
    await happen(it.app, "system.backup_failed", { detail: "of yesterday" });
    await it.app.stop();
    clock.advance(25 * HOUR_MS);
    it.app = await it.open();
    await happen(it.app, "system.backup_failed", { detail: "of today" });
    await waitUntil("it is told", async () => (await it.said(it.app)).length === 4);
    expect((await it.said(it.app)).at(-1)).toBe("The backup failed: of today.");
  });

  it("describe questions, budgets, schedules, engines, platforms, webhooks and the disk", async () => {
    await using it = await withOps((to) => [{ on: ["*"], to, every: "0ms" }], {
      engines: buildFakeEngines(),
    });
    const { app, worker } = it;
    const run = await startAskingRun(app);
    const question = await run.ask({ text: "Which colour?" });
    await waitUntil("the question is told", async () => (await it.said(app)).length === 1);
    await app.call(`POST /api/questions/${question.id}/cancel`, {});
    await run.end();
    await app.call("POST /api/budgets", {
      name: "None",
      target: `worker:${worker.id}`,
      unit: "runs",
      limit: 0,
      period: "24h",
    });
    await app.until("budget.hard");
    const schedule = await app.call("POST /api/tasks", {
      ...{
        message_id: "m",
        worker_id: run.workerId,
        instruction: "exit 3",
        type: "scheduled",
        cron: "0 0 1 1 *",
      },
      ...{ name: "Nightly", pause_after_failures: 1 },
    });
    await app.call(`POST /api/tasks/${schedule.id}/run`);
    await app.until("schedule.paused");
    await happen(app, "engine.limited", { engine: "claude", until: Date.UTC(2027, 0, 1) });
    await happen(app, "engine.lifted", { engine: "claude" });
    await happen(app, "platform.down", { platform: "alerts", error: "no route" });
    await happen(app, "webhook.disabled", { name: "ci", reason: "its receiver answered 410 (gone)" });
    await happen(app, "system.disk_low", { detail: "5 MB are free in /data" });
    await waitUntil("the last is told", async () => (await it.said(app)).at(-1)?.includes("5 MB") === true);
    expect(await it.said(app)).toEqual([
      `Open question: Which colour?\nAnswer it there, or with: svc ctl question answer ${question.id} <answer>`,
      'The budget "None" has used or reserved 0 of 0 runs (24h).',
      expect.stringMatching(/^Agent failed: exit_code, .*\(execution /s),
      expect.stringMatching(
        /^The schedule "Nightly" is paused: its last 1 runs failed; .* svc ctl schedule resume /s,
      ),
      "claude is rate-limited until 2027-01-01T00:00:00.000Z.",
      "claude is available again.",
      "The platform alerts is unreachable: no route.",
      "The webhook ci was disabled: its receiver answered 410 (gone). Enable it with: " +
      "svc ctl webhook update ci --enable",
      "The disk is nearly full: 5 MB are free in /data.",
    ]);
    const kinds = await app.db.read(
      "select data ->> '$.on' as kind from journal where kind = 'notice.raised' order by seq",
    );
    expect(kinds.map(({ kind }) => kind)).toEqual([
      ...[
        "question.opened",
        "budget.hard",
        "schedule.failed",
        "schedule.paused",
        "engine.limited",
        "engine.back",
      ],
      ...["platform.down", "delivery.failed", "disk.low"],
    ]);
  });

  it("reach their webhook signed, whatever events it selects, and no other webhook", async () => {
    await using receiver = new Receiver(SECRET);
    await using other = new Receiver(SECRET);
    const hook = { secret: SECRET, events: ["memory.saved"], allow_private: true };
    const notices = [{ on: ["backup.*"], to: "webhook:ci" }];
    await using app = await openApp({
      config: {
        notices,
        webhooks: [{ ...hook, name: "ci", url: receiver.url }, { ...hook, name: "other", url: other.url }],
      },
    });
    await looked(app);
    await happen(app, "system.backup_failed", { detail: "no room" });
    await app.call("PUT /api/memory/entry", { scope: "global", key: "a", value: "a" });
    await waitUntil("both arrive", () => receiver.got.length === 2 && other.got.length === 1);
    const arrived = receiver.got.map(({ body }) => body).sort((a, b) => a.type < b.type ? 1 : -1);
    expect(arrived).toMatchObject([
      {
        type: "notice.raised",
        data: {
          data: { on: "backup.failed", to: "webhook:ci", text: "The backup failed: no room.", left_out: 0 },
        },
      },
      { type: "memory.saved" },
    ]);
    expect(other.got.map(({ body }) => body.type)).toEqual(["memory.saved"]);
    const { cursor } = await app.call("GET /api/webhooks/other");
    expect(cursor).toBeGreaterThan(0);
  });

  it("are passed to a program on its standard input, and a failing program stops nothing", async () => {
    const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
    const file = join(folder, "told");
    const program = (script: string) => ({
      on: ["backup.failed"],
      program: ["/bin/sh", "-c", script],
      every: "0ms",
    });
    await using app = await openApp({
      config: { notices: [program("exit 3"), program(`cat >> ${file}; echo >> ${file}`)] },
    });
    await looked(app);
    await happen(app, "system.backup_failed", { detail: "no room" });
    await happen(app, "system.backup_failed", { detail: "again" });
    const lines = async () =>
      (await Deno.readTextFile(file).catch(() => "")).split("\n").filter((line) => line !== "");
    await waitUntil("both are told", async () => (await lines()).length === 2);
    expect((await lines()).map((line) => JSON.parse(line))).toMatchObject([
      { type: "backup.failed", timestamp: expect.any(String), data: { text: "The backup failed: no room." } },
      { type: "backup.failed", data: { text: "The backup failed: again." } },
    ]);
    await Deno.remove(folder, { recursive: true });
  });

  it("cause no notices, and never go to their own subject", async () => {
    await using it = await withOps((to) => [
      { on: ["*"], to, every: "0ms" },
      { on: ["*"], to: "alerts:room", every: "0ms" },
      { on: ["*"], to: "webhook:ci", every: "0ms" },
    ]);
    const { app } = it;
    await looked(app);
    const outbound = (id: string, source: string) => ({
      sql:
        `insert into outbound_message (id, session_key, platform, message_id, content, media, status, source_type, source_id,
          question_id, execution_id, created_at, sent_at, due_at)
        values (?, 'alerts:room', 'alerts', '', 'x', 'null', 'failed', ?, '', '', '', 0, null, null)`,
      args: [id, source],
    });
    await app.db.write([outbound("of-a-worker", "worker"), outbound("a-notice", "system")]);
    const undelivered = (outbound_id: string) =>
      app.db.write([record(app.server.parts.clock.now(), {
        kind: "message.undelivered",
        session_key: "alerts:room",
        data: { outbound_id, reason: "no route" },
      })]);
    await undelivered("a-notice");
    await undelivered("of-a-worker");
    await happen(app, "webhook.disabled", { name: "ci", reason: "gone" });
    await happen(app, "system.backup_failed", { detail: "last" });
    await waitUntil("the last is told", async () => (await it.said(app)).length === 3);
    const places = await app.db.read(
      "select data ->> '$.to' as place, data ->> '$.about' as about from journal where kind = 'notice.raised'",
    );
    const about = (to: string) => places.filter(({ place }) => place === to).map((row) => row.about);
    expect(about("alerts:room")).toEqual(["webhook:ci", "backup"]);
    expect(about("webhook:ci")).toEqual(["platform:alerts", "backup"]);
  });

  it("report an engine as available after a successful run", async () => {
    const clock = new TestClock(Date.now());
    await using it = await withOps((to) => [{ on: ["engine.*"], to }], {
      engines: {
        default: "claude",
        claude: { command: FAKE_CLAUDE, env: { ANTHROPIC_API_KEY: "x" } },
      } as never,
    }, clock);
    const { app, worker } = it;
    await createTask(app, worker.id, "limit 3600");
    await app.until("engine.limited");
    await Deno.writeTextFile(join(worker.work_dir, "free"), "");
    const { limited_until } = await app.call("GET /api/engines/claude");
    clock.advance(limited_until - clock.now());
    await waitUntil("both are told", async () => (await it.said(app)).length === 2);
    expect(await it.said(app)).toEqual([
      `claude is rate-limited until ${new Date(limited_until).toISOString()}.`,
      "claude is available again.",
    ]);
  });
});
