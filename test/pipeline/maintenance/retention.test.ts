import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { createId } from "../../../src/base/id.ts";
import { buildDataPaths, getEventsPath, getLogPath } from "../../../src/base/paths.ts";
import { createRetention } from "../../../src/pipeline/maintenance/retention.ts";
import { Database } from "../../../src/store/db/database.ts";
import { migrate } from "../../../src/store/db/migrate.ts";
import { Wakeups } from "../../../src/base/wakeups.ts";
import { openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { expectCounters, insertRows } from "../../harness/model/counters.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { createRandom } from "../../harness/model/schedule.ts";

const DAY_MS = 86_400_000;
const ROWS = 10_000;
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const KEPT = { executions: 90 * DAY_MS, messages: 365 * DAY_MS, journal: 30 * DAY_MS, trees: 14 * DAY_MS };

/** Retention on a separate database with a test clock. */
class Bench implements AsyncDisposable {
  readonly clock = new TestClock("2026-06-01T00:00:00Z");
  readonly db: Database;
  readonly paths;
  readonly stage;
  readonly #folder;

  private constructor(db: Database, folder: { path: string } & AsyncDisposable) {
    this.db = db;
    this.#folder = folder;
    this.paths = buildDataPaths(folder.path);
    const config = configSchema.parse({}).retention;
    expect(config).toEqual(KEPT);
    this.stage = createRetention({
      db,
      clock: this.clock,
      wakeups: new Wakeups(),
      paths: this.paths,
      config,
    });
    this.stage.start();
  }

  static async open(): Promise<Bench> {
    const db = await Database.open(":memory:");
    await migrate(db, 0);
    return new Bench(db, await createTempDir());
  }

  /** Lets time pass until retention has been idle for a whole poll. */
  async run(): Promise<void> {
    let changes = -1;
    for (let quiet = 0; quiet < 2;) {
      const rounds = this.stage.rounds;
      this.clock.advance(15 * 60_000);
      while (this.stage.rounds === rounds || !this.stage.idle) {
        this.clock.advance(20);
        await new Promise((resolve) => setTimeout(resolve));
      }
      const now = (await this.db.first<{ n: number }>("select total_changes() as n"))?.n ?? 0;
      quiet = now === changes ? quiet + 1 : 0;
      changes = now;
    }
  }

  async file(path: string, ageMs: number): Promise<void> {
    await Deno.mkdir(dirname(path), { recursive: true });
    await Deno.writeTextFile(path, "x");
    const at = new Date(this.clock.now() - ageMs);
    await Deno.utime(path, at, at);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const stopped = this.stage.stop();
    this.clock.advance(1);
    await stopped;
    await this.db.close();
    await this.#folder[Symbol.asyncDispose]();
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

type Row = Record<string, string | number | null> & { id: string };

describe("retention (contract 7) [DUR-11]", () => {
  it(
    `of ${ROWS} random rows deletes only ended and expired ones (seed ${SEED}) [DUR-11]`,
    async () => {
      await using bench = await Bench.open();
      const { db, clock } = bench;
      const now = clock.now();
      const world = randomWorld(createRandom(SEED), now);
      for (const [table, rows] of Object.entries(world)) {
        for (let at = 0; at < rows.length; at += 500) {
          await db.write(
            insertRows(table, rows.slice(at, at + 500)),
          );
        }
      }
      await expectCounters(db);
      // Retention takes less time than any row is away from its limit.
      await bench.run();
      const expected = survivors(world, now);
      let gone = 0;
      for (const [table, rows] of Object.entries(world)) {
        const left = await db.read<{ id: string }>(`select id from ${table} order by id`);
        expect(left.map((row) => row.id), table).toEqual([...expected[table] ?? []].sort());
        gone += rows.length - left.length;
      }
      expect(gone).toBeGreaterThan(ROWS / 4);
      await expectCounters(db);
    },
    180_000,
  );

  it("keeps unfinished deliveries and occurrences that wait for their run, however old", async () => {
    await using bench = await Bench.open();
    const { db, clock } = bench;
    const old = clock.now() - 400 * DAY_MS;
    const statuses = ["pending", "gating", "running", "completed", "failed", "cancelled", "gated"];
    const firing = (status: string, n: number) => ({
      task_id: "t",
      run_no: n,
      due_at: old,
      status,
      created_at: old,
    });
    const question = (id: string, more: Record<string, string | number>) => ({
      id,
      session_key: "local:x",
      message_id: "m",
      task_id: "t",
      asked_by: "worker:w",
      text: "?",
      status: "answered",
      created_at: old,
      expires_at: old,
      answered_at: old,
      ...more,
    });
    const task = {
      id: "waits",
      message_id: "m",
      worker_id: "w",
      session_key: "local:x",
      instruction: "i",
      type: "immediate",
      status: "pending",
      due_at: old,
      created_by: "x",
      created_at: old,
      updated_at: old,
    };
    await db.write([
      ...insertRows("occurrence", statuses.map(firing)),
      ...insertRows("task", [task]),
      ...insertRows("question", [
        question("seen", { seen_at: old }),
        question("of a person", { task_id: "" }),
        question("expired", { status: "expired" }),
        question("unseen", {}),
        question("brought", { seen_at: old, answer_task_id: task.id }),
      ]),
    ]);
    await bench.run();
    expect(await db.read("select status from occurrence order by run_no")).toEqual(
      ["pending", "gating", "running"].map((status) => ({ status })),
    );
    expect(await db.read("select id from question order by id")).toEqual([{ id: "brought" }, {
      id: "unseen",
    }]);
  });

  it("removes logs with their executions, uploads without a message, and once a day files without a row", async () => {
    await using bench = await Bench.open();
    const { db, clock, paths } = bench;
    const [old, young, orphan, fresh, thought] = [createId(), createId(), createId(), createId(), createId()];
    const ended = (id: string, days: number) =>
      execution(id, createId(), "completed", clock.now() - days * DAY_MS);
    await db.write([
      ...insertRows("execution", [ended(old, 91), ended(young, 89)]),
      ...insertRows("bee_run", [beeRun(thought, "completed", clock.now() - 89 * DAY_MS)]),
    ]);
    for (const id of [old, young, orphan, thought]) {
      await bench.file(getLogPath(paths, id), 2 * DAY_MS);
      await bench.file(getEventsPath(paths, id), 2 * DAY_MS);
    }
    await bench.file(getLogPath(paths, fresh), DAY_MS / 2);
    const upload = (name: string) => join(paths.uploads, "session", name);
    const kept = ["shown", "young", "written", "heard", "sent"];
    for (const name of [...kept, "unseen", "unknown"]) await bench.file(upload(name), 400 * DAY_MS);
    const row = (name: string, days: number) => ({
      path: upload(name),
      session_id: "session",
      name,
      original_name: name,
      size: 1,
      mime: "text/plain",
      created_at: clock.now() - days * DAY_MS,
    });
    const at = clock.now() - 10 * DAY_MS;
    const media = (name: string) => JSON.stringify({ path: upload(name) });
    const message = (name: string) => ({ ...inbound(createId(), "bee_processed", at), media: media(name) });
    const reply = (name: string) => ({ ...outbound(createId(), "sent", at), media: media(name) });
    await db.write([
      ...insertRows("upload", [row("shown", 400), row("young", 300), row("unseen", 400), row("sent", 400)]),
      // Only their messages refer to the files `heard` and `written`.
      ...insertRows("inbound_message", [message("shown"), message("heard")]),
      ...insertRows("outbound_message", [reply("written"), reply("sent")]),
    ]);
    await bench.run();
    const all = [old, young, orphan, fresh, thought];
    // The log of a coordinator run, which has no execution, is kept as long as the run.
    expect(await Promise.all(all.map((id) => exists(getLogPath(paths, id))))).toEqual(
      [false, true, false, true, true],
    );
    const withEvents = [old, young, orphan, thought];
    expect(await Promise.all(withEvents.map((id) => exists(getEventsPath(paths, id))))).toEqual(
      [false, true, false, true],
    );
    const names = [...Deno.readDirSync(join(paths.uploads, "session"))].map((entry) => entry.name);
    expect(names.sort()).toEqual(kept.sort());
    const stored = await db.read("select name from upload order by name");
    expect(stored.map(({ name }) => name)).toEqual(["sent", "shown", "young"]);
  });

  it("removes stored answers after a day, expired refresh tokens, occurrences and usage", async () => {
    await using bench = await Bench.open();
    const { db, clock } = bench;
    const now = clock.now();
    const hours = (count: number) => now - count * 3_600_000;
    await db.write([
      ...insertRows(
        "idempotency",
        [20, 30].map((age) => ({
          key: `k${age}`,
          fingerprint: "f",
          status: 201,
          response: "{}",
          created_at: hours(age),
        })),
      ),
      ...insertRows(
        "refresh_token",
        [-48, 48].map((left) => ({
          id: `t${left}`,
          token_hash: `h${left}`,
          username: "admin",
          version: 1,
          created_at: 0,
          expires_at: hours(-left),
        })),
      ),
      ...insertRows(
        "occurrence",
        [29, 31].map((days) => ({
          task_id: "t",
          run_no: days,
          minute: days,
          due_at: days * 60_000,
          status: "completed",
          created_at: now - days * DAY_MS,
        })),
      ),
      ...insertRows(
        "usage",
        [89, 91].map((days) => ({
          bucket_start: Math.floor((now - days * DAY_MS) / 900_000),
          worker_id: "w",
          executions: days,
          failed: 0,
        })),
      ),
    ]);
    await bench.run();
    expect(await db.read("select key from idempotency")).toEqual([{ key: "k20" }]);
    expect(await db.read("select id from refresh_token")).toEqual([{ id: "t48" }]);
    expect(await db.read("select minute from occurrence")).toEqual([{ minute: 29 }]);
    expect(await db.read("select executions from usage")).toEqual([{ executions: 89 }]);
  });

  it("deletes nothing by age for an hour after a clock jump [DSP-8]", async () => {
    await using bench = await Bench.open();
    const { db, clock, stage } = bench;
    const at = clock.now();
    await db.write(insertRows("execution", [execution(createId(), createId(), "completed", at)]));
    await bench.run();
    const count = async () => (await db.first<{ n: number }>("select count(*) as n from execution"))?.n;
    clock.jump("2036-06-01T00:00:00Z");
    const pass = async (minutes: number) => {
      const rounds = stage.rounds;
      clock.advance(minutes * 60_000);
      while (stage.rounds === rounds || !stage.idle) await new Promise((resolve) => setTimeout(resolve));
    };
    await pass(15);
    await pass(30);
    expect(await count()).toBe(1);
    // Correcting the clock is another jump, and nothing was lost.
    clock.jump(at + 2 * 3_600_000);
    await pass(59);
    await pass(15);
    await bench.run();
    expect(await count()).toBe(1);
  });

  it("runs in the service, and does nothing in the first minutes", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock });
    await app.db.write(
      insertRows("execution", [execution(createId(), createId(), "completed", clock.now() - 100 * DAY_MS)]),
    );
    const stage = app.server.stages.find((one) => one.name === "retention");
    const count = async () => (await app.db.first<{ n: number }>("select count(*) as n from execution"))?.n;
    expect(stage).toBeDefined();
    expect(await count()).toBe(1);
    clock.advance(10 * 60_000 + 1);
    while (await count() !== 0) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(await app.call("GET /api/system/overview")).toMatchObject({ executions: { total: 0 } });
  });

  it("finds old rows by index: no statement scans a table that grows", async () => {
    const db = await Database.open(":memory:");
    await migrate(db, 0);
    const store = await import("../../../src/store/db/retention.ts");
    const statements = Object.entries(store).flatMap(([name, prune]) =>
      name.startsWith("prune") ? [(prune as typeof store.pruneTasks)(5)] : []
    );
    expect(statements.length).toBeGreaterThanOrEqual(10);
    for (const { sql, args } of statements) {
      const plan = await db.read<{ detail: string }>(`explain query plan ${sql}`, args);
      const scans = plan.map((step) => step.detail).filter((detail) =>
        /^SCAN (?!json_each|CONSTANT)/.test(detail)
      );
      expect(scans, sql).toEqual([]);
    }
    await db.close();
  });

  it("keeps the last ledger sum before the limit for each target (contract 14)", async () => {
    await using bench = await Bench.open();
    const { db, clock } = bench;
    const row = (target: string, days: number, runs: number) => ({
      ...{ target, at: clock.now() - days * DAY_MS, runs },
      ...{ tokens: 0, ms: 0, nano_usd: 0 },
    });
    const rows = [row("global", 50, 5), row("global", 40, 9), row("global", 1, 10), row("worker:w", 60, 3)];
    await db.write(insertRows("ledger", rows));
    await bench.run();
    expect(await db.read("select target, runs from ledger order by target, runs")).toEqual([
      { target: "global", runs: 9 },
      { target: "global", runs: 10 },
      { target: "worker:w", runs: 3 },
    ]);
  });
});

/** Generates every kind of row in every state and age. No row is nearer to a limit than a day. */
function randomWorld(chance: () => number, now: number): Record<string, Row[]> {
  const pick = <T>(all: readonly T[]): T => all[Math.floor(chance() * all.length)] as T;
  const age = () => now - (Math.floor(chance() * 500) + 0.5) * DAY_MS;
  const world: Record<string, Row[]> = {
    task: [],
    execution: [],
    bee_run: [],
    inbound_message: [],
    outbound_message: [],
  };
  const add = (table: string, row: Row) => (world[table] as Row[]).push(row);
  const count = () => Object.values(world).reduce((sum, rows) => sum + rows.length, 0);
  while (count() < ROWS) {
    const message = inbound(
      createId(),
      pick(["received", "feeding", "bee_processed", "merged", "failed"]),
      age(),
    );
    if (message.status === "merged") {
      message.merged_into = pick(world.inbound_message as Row[])?.id ?? createId();
    }
    add("inbound_message", message);
    const status = pick(["scheduled", "pending", "running", "completed", "failed", "cancelled", "completed"]);
    const ended = age();
    const task: Row = {
      id: createId(),
      message_id: chance() < 0.7 ? message.id : "script",
      worker_id: "w",
      session_key: "s",
      instruction: "i",
      type: status === "scheduled" ? "scheduled" : "immediate",
      status,
      next_run_at: status === "scheduled" ? now + DAY_MS : null,
      due_at: status === "pending" ? age() : null,
      execution_id: null,
      created_by: "bee",
      created_at: ended,
      updated_at: ended,
    };
    for (let runs = Math.floor(chance() * 3); runs > 0; runs--) {
      const run = execution(createId(), task.id, pick(["pending", "running", "completed", "failed"]), age());
      task.execution_id = run.id;
      add("execution", run);
    }
    add("task", task);
    add("bee_run", beeRun(createId(), pick(["running", "completed", "failed"]), age()));
    add("outbound_message", outbound(createId(), pick(["sent", "failed", "waiting"]), age()));
  }
  return world;
}

/** Computes the remaining rows independently of the SQL. */
function survivors(world: Record<string, Row[]>, now: number): Record<string, Set<string>> {
  const { task = [], execution = [], bee_run = [], inbound_message = [], outbound_message = [] } = world;
  const old = (at: unknown, kept: number) => Number(at) < now - kept;
  const active = task.filter((row) => ["scheduled", "pending", "running"].includes(String(row.status)));
  const latest = new Set(active.map((row) => row.execution_id));
  const answered = new Set(active.map((row) => row.message_id));
  const keep = (rows: Row[], goes: (row: Row) => boolean) =>
    new Set(rows.filter((row) => !goes(row)).map((row) => row.id));
  const executions = keep(
    execution,
    (row) =>
      ["completed", "failed"].includes(String(row.status)) && old(row.completed_at, KEPT.executions) &&
      !latest.has(row.id),
  );
  const withRuns = new Set(execution.filter((row) => executions.has(row.id)).map((row) => row.task_id));
  return {
    execution: executions,
    task: keep(
      task,
      (row) =>
        ["completed", "failed", "cancelled"].includes(String(row.status)) &&
        old(row.updated_at, KEPT.executions) &&
        !withRuns.has(row.id),
    ),
    bee_run: keep(bee_run, (row) => row.status !== "running" && old(row.completed_at, KEPT.executions)),
    inbound_message: keep(
      inbound_message,
      (row) =>
        ["bee_processed", "merged", "failed"].includes(String(row.status)) &&
        old(row.received_at, KEPT.messages) &&
        !answered.has(row.merged_into ?? row.id),
    ),
    outbound_message: keep(
      outbound_message,
      (row) =>
        row.status === "sent"
          ? old(row.sent_at, KEPT.messages)
          : row.due_at === null && old(row.created_at, KEPT.messages),
    ),
  };
}

function execution(id: string, taskId: string, status: string, at: number): Row {
  return {
    id,
    worker_id: "w",
    worker_name: "w",
    task_id: taskId,
    message_id: "m",
    session_key: "s",
    engine: "echo",
    instruction: "i",
    status,
    attempt: 1,
    run_id: "r",
    created_at: at,
    completed_at: status === "completed" || status === "failed" ? at : null,
  };
}

function beeRun(id: string, status: string, at: number): Row {
  return {
    id,
    message_id: "m",
    session_key: "s",
    engine: "rules",
    status,
    attempt: 1,
    created_at: at,
    completed_at: status === "running" ? null : at,
  };
}

function inbound(id: string, status: string, at: number): Row {
  return {
    id,
    session_key: "s",
    platform: "local",
    platform_message_id: id,
    content: "c",
    status,
    merged_into: null,
    due_at: at,
    received_at: at,
  };
}

function outbound(id: string, status: string, at: number): Row {
  return {
    id,
    session_key: "s",
    platform: "local",
    message_id: "m",
    content: "c",
    status: status === "sent" ? "sent" : "failed",
    source_type: "bee",
    due_at: status === "waiting" ? at : null,
    created_at: at,
    sent_at: status === "sent" ? at : null,
  };
}
