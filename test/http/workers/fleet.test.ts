import { describe, expect, it } from "vitest";
import { planFleet } from "../../../src/domain/workers/fleet_plan.ts";
import type { FleetPlan } from "../../../src/domain/workers/fleet.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { createToken } from "../../harness/model/people.ts";
import { startRun } from "../../harness/service/run.ts";

const FLEET = {
  departments: [{ name: "News", sort_order: 2 }, { name: "Sport", parent: "News" }],
  workers: [
    {
      name: "Ada",
      description: "Writes",
      memory: "Be short.",
      engine: "echo",
      departments: ["Sport", "News"],
    },
    {
      name: "Bob",
      scopes: ["read:tasks"],
      paused: true,
      engine_args: {},
      verify: { command: ["make", "test"], timeout_ms: 60_000, attempts: 0 },
    },
  ],
  schedules: [
    {
      name: "Morning",
      worker: "Ada",
      instruction: "Write the news",
      cron: "0 7 * * *",
      time_zone: "Europe/Berlin",
    },
    {
      name: "Check",
      worker: "Bob",
      instruction: "Look",
      cron: "*/5 * * * *",
      paused: true,
      max_runs: 9,
      overlap: "queue",
      gate: { command: ["git", "fetch", "--dry-run"], timeout_ms: 30_000 },
      verify: { command: ["true"], timeout_ms: 1_000, attempts: 1 },
    },
  ],
  budgets: [
    { name: "All", unit: "runs", limit: 500, period: "24h" },
    {
      name: "Ada's",
      unit: "usd",
      limit: 2.5,
      period: "month",
      target: "worker:Ada",
      action: "stop",
      soft: 50,
    },
    { name: "Desk", unit: "tokens", limit: 1_000, period: "7d", target: "department:News" },
  ],
  webhooks: [{ name: "CI", url: "https://example.org/hook", events: ["task.*", "execution.failed"] }],
  memory: { tone: "friendly", language: "English" },
};

const SECRET = `whsec_${btoa("a".repeat(32))}`;

async function apply(app: App, fleet: object, more: object = {}) {
  return await app.send("POST /api/fleet/apply", { fleet, ...more });
}

const linesOf = ({ changes }: FleetPlan) =>
  changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`);

describe("the fleet as a file (contract 16)", () => {
  it("creates everything, changes nothing the second time, and exports a fleet that recreates it elsewhere", async () => {
    await using app = await openApp({ inMemory: true });
    const first = await apply(app, FLEET);
    expect(first.status).toBe(200);
    expect(linesOf(first.body)).toEqual([
      "create department News",
      "create department Sport",
      "create worker Ada",
      "create worker Bob",
      "create schedule Check",
      "create schedule Morning",
      "create budget Ada's",
      "create budget All",
      "create budget Desk",
      "create webhook CI",
      "create memory language",
      "create memory tone",
    ]);
    const [bob, ada] = await app.call("GET /api/workers");
    expect(ada).toMatchObject({ name: "Ada", engine: "echo", status: "idle" });
    expect(ada.departments.map(({ name }: { name: string }) => name)).toEqual(["News", "Sport"]);
    expect((await Deno.stat(ada.work_dir)).isDirectory).toBe(true);
    expect(bob).toMatchObject({ status: "paused", scopes: ["read:tasks"] });
    expect((await apply(app, FLEET)).body.changes).toEqual([]);
    const budgets = await app.call("GET /api/budgets");
    expect(budgets.map(({ target }: { target: string }) => target).sort()).toEqual(
      ["global", `worker:${ada.id}`, expect.stringMatching(/^department:0/)].sort(),
    );
    const exported = await app.call("GET /api/fleet");
    expect(exported.schedules).toEqual(FLEET.schedules.toReversed());
    expect(exported.budgets[1]).toEqual({ name: "All", unit: "runs", limit: 500, period: "24h" });
    expect(exported.departments).toEqual([{ name: "News", sort_order: 2 }, {
      name: "Sport",
      parent: "News",
    }]);
    expect(exported.webhooks).toEqual([{
      name: "CI",
      url: "https://example.org/hook",
      events: ["execution.failed", "task.*"],
    }]);
    await using other = await openApp({ inMemory: true });
    await apply(other, exported);
    expect(await other.call("GET /api/fleet")).toEqual(exported);
    expect(JSON.stringify(await other.call("GET /api/fleet"))).toBe(JSON.stringify(exported));
  });

  it("shows the changed fields, swaps departments, and prunes only its own objects", async () => {
    await using app = await openApp({ inMemory: true });
    await apply(app, FLEET);
    await app.call("POST /api/workers", { name: "By hand" });
    const turned = {
      departments: [{ name: "Sport" }, { name: "news", parent: "Sport", sort_order: 2 }],
      workers: [{ name: "Ada", description: "Edits", engine: "echo", departments: ["Sport"] }],
      schedules: [{ ...FLEET.schedules[1], worker: "Ada", paused: false, cron: "0 * * * *" }],
    };
    const planned = await app.call("POST /api/fleet/plan", { fleet: turned, prune: true });
    expect(linesOf(planned)).toEqual([
      "update department news",
      "update department Sport",
      "update worker Ada",
      "update schedule Check",
      "delete worker Bob",
      "delete schedule Morning",
      "delete budget Ada's",
      "delete budget All",
      "delete budget Desk",
      "delete webhook CI",
      "delete memory language",
      "delete memory tone",
    ]);
    expect(planned.changes[2].fields).toContainEqual({
      name: "description",
      before: "Writes",
      after: "Edits",
    });
    const wrong = await apply(app, turned, { prune: true, plan: "0".repeat(64) });
    expect([wrong.status, wrong.body.code]).toEqual([409, "conflict"]);
    expect((await apply(app, turned, { prune: true, plan: planned.hash })).status).toBe(200);
    const [sport] = await app.call("GET /api/departments");
    expect([sport.name, sport.children[0].name]).toEqual(["Sport", "news"]);
    const [check, ...others] = await app.call("GET /api/schedules?status=scheduled,running,pending");
    expect([others, check.name, check.worker_id]).toEqual([
      [],
      "Check",
      (await app.call("GET /api/workers"))[1].id,
    ]);
    expect(new Date(check.next_run_at).getUTCMinutes()).toBe(0);
    const names = (await app.call("GET /api/workers")).map(({ name }: { name: string }) => name);
    expect(names).toEqual(["By hand", "Ada"]);
    expect(await app.call("GET /api/memory?scope=global")).toEqual([]);
    expect(await app.call("GET /api/events?kind=fleet.applied", undefined, { accept: "application/json" }))
      .toHaveLength(2);
  });

  it("ignores objects of another fleet or none, and two with one name", async () => {
    await using app = await openApp({ inMemory: true });
    await app.call("POST /api/workers", { name: "Ada", description: "by hand" });
    const refused = await apply(app, { workers: [{ name: "ada" }, { name: "New" }] });
    expect([refused.status, refused.body.detail]).toEqual([
      409,
      expect.stringContaining("no file manages it"),
    ]);
    expect(await app.call("GET /api/workers")).toHaveLength(1);
    expect(
      (await apply(app, { workers: [{ name: "Ada", description: "by hand" }] }, { adopt: true })).body
        .changes,
    )
      .toMatchObject([{ action: "adopt", kind: "worker", name: "Ada" }]);
    const foreign = await apply(app, { fleet: "other", workers: [{ name: "Ada" }] });
    expect(foreign.body.detail).toContain("the fleet default manages it");
    await app.call("POST /api/workers", { name: "ADA" });
    const twice = await apply(app, { workers: [{ name: "Ada" }] }, { adopt: true });
    expect([twice.status, twice.body.detail]).toEqual([
      409,
      expect.stringContaining("several objects have this name"),
    ]);
    expect((await app.send("GET /api/fleet")).status).toBe(409);
  });

  it.each([
    [{ departments: [{ name: "A", parent: "B" }, { name: "B", parent: "a" }] }, /form a cycle/],
    [{ departments: [{ name: "A", parent: "Nobody" }] }, /departments\.0\.parent.*Nobody/],
    [{ workers: [{ name: "A" }, { name: "a" }] }, /workers\.1\.name.*entry 0/],
    [{ workers: [{ name: "A", departments: ["X"] }] }, /workers\.0\.departments\.0.*"X"/],
    [
      { budgets: [{ name: "A", unit: "runs", limit: 1, period: "24h", target: "worker:X" }] },
      /budgets\.0\.target.*"X"/,
    ],
    [
      { budgets: [{ name: "A", unit: "runs", limit: 1, period: "24h", target: "engine:X" }] },
      /budgets\.0\.target.*"X"/,
    ],
    [
      { schedules: [{ name: "S", worker: "X", instruction: "i", cron: "0 7 * * *" }] },
      /schedules\.0\.worker.*"X"/,
    ],
    [{
      workers: [{ name: "A" }],
      schedules: [{ name: "S", worker: "A", instruction: "i", cron: "0 7 31 2 *" }],
    }, /schedules\.0\.cron/],
    [{ workers: [{ name: "A", engine: "none" }] }, /workers\.0\.engine.*Known/],
    [{ workers: [{ name: "A", salary: 1 }] }, /salary.*unknown/],
    [{ people: [] }, /people.*unknown/],
  ])("refuses %j with the field and the reason, and changes nothing", async (fleet, reason) => {
    await using app = await openApp({ inMemory: true });
    const { status, body } = await apply(app, fleet);
    expect([status, body.detail]).toEqual([400, expect.stringMatching(reason)]);
    expect(await app.call("GET /api/workers")).toEqual([]);
    expect(await app.call("GET /api/departments")).toEqual([]);
  });

  it("changes webhooks but keeps their secrets, and refuses webhooks that the configuration defines", async () => {
    const hook = { url: "https://example.org/a", events: ["task.*"] };
    await using app = await openApp({
      inMemory: true,
      config: { webhooks: [{ name: "fixed", ...hook, secret: SECRET }] },
    });
    await apply(app, { webhooks: [{ name: "ci", ...hook }] });
    const secretOf = async () =>
      (await app.db.first<{ secret: string }>("select secret from webhook where name_key = 'ci'"))?.secret;
    const secret = await secretOf();
    expect(secret).toMatch(/^whsec_/);
    const changed = { name: "CI", url: "https://example.org/b", events: ["*"], enabled: false };
    expect(
      (await apply(app, { webhooks: [changed] })).body.changes[0].fields.map(({ name }: { name: string }) =>
        name
      ),
    )
      .toEqual(["url", "events", "enabled", "name"]);
    expect((await apply(app, { webhooks: [changed] })).body.changes).toEqual([]);
    expect([await app.call("GET /api/webhooks/ci"), await secretOf()]).toMatchObject([changed, secret]);
    expect((await app.call("GET /api/fleet")).webhooks).toEqual([changed]);
    const taken = await apply(app, { webhooks: [{ name: "Fixed", ...hook }] });
    expect([taken.status, taken.body.detail]).toEqual([
      400,
      expect.stringMatching(/webhooks\.0\.name.*configuration/),
    ]);
    await apply(app, {}, { prune: true });
    expect((await app.call("GET /api/webhooks")).map(({ name }: { name: string }) => name)).toEqual([
      "fixed",
    ]);
  });

  it("applies 500 objects in one batch, and ends the run of a deleted worker [FLT-1]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const workers = Array.from({ length: 500 }, (_, index) => ({ name: `w${index}` }));
    expect((await apply(app, { workers })).body.changes).toHaveLength(500);
    const run = await startRun(app, ["read:tasks"]);
    const name = (await app.call(`GET /api/workers/${run.workerId}`)).name;
    const kept = [...workers.slice(1), { name, engine: "fake", scopes: ["read:tasks"] }];
    await apply(app, { workers: kept }, { adopt: true });
    await apply(app, { workers: workers.slice(1) }, { prune: true });
    const { status, failure } = await app.call(`GET /api/executions/${run.executionId}`);
    expect([status, failure]).toEqual(["failed", "cancelled"]);
    expect((await app.send("GET /api/workers?page_size=1")).headers.get("x-total-count")).toBe("499");
  });

  it("requires write:commands to set or remove a command, but not to keep a command (contract 13.2)", async () => {
    await using app = await openApp({ inMemory: true });
    const [ada, bob] = FLEET.workers;
    const checked = { ...ada, verify: { command: ["true"] } };
    await apply(app, { ...FLEET, workers: [checked, bob] });
    const { headers } = await createToken(app, "repository", ["write:fleet"]);
    const by = async (change: object) => {
      const fleet = { ...FLEET, workers: [checked, bob], ...change };
      return (await app.send("POST /api/fleet/apply", { fleet }, headers)).status;
    };
    const [morning, check] = FLEET.schedules;
    const { verify, ...bare } = check ?? {};
    expect(await by({ memory: { tone: "formal", language: "English" } })).toBe(200);
    expect(await by({ schedules: [morning, bare] })).toBe(403);
    expect(await by({ schedules: [{ ...morning, verify }, check] })).toBe(403);
    expect(await by({ workers: [ada, bob] })).toBe(403);
    const [found] = (await app.call("GET /api/fleet")).schedules;
    expect(found).toMatchObject({ name: "Check", verify });
  });

  it("uses the stored engine of a worker, which must support a command (contract 13.2)", async () => {
    await using app = await openApp({ inMemory: true, config: { engines: buildFakeEngines() } });
    await app.call("POST /api/workers", { name: "Plain", engine: "echo" });
    await app.call("POST /api/workers", { name: "Boxed", engine: "fake" });
    const schedule = { name: "S", instruction: "i", cron: "0 7 * * *", verify: { command: ["true"] } };
    expect((await apply(app, { schedules: [{ ...schedule, worker: "Plain" }] })).status).toBe(200);
    const boxed = await apply(app, { schedules: [{ ...schedule, name: "T", worker: "Boxed" }] });
    expect([boxed.status, boxed.body.detail]).toEqual([400, expect.stringContaining("engines.fake.shell")]);
  });

  it("a plan is empty for an equal fleet in any order", () => {
    const one = { kind: "memory", name: "a", fields: { value: "1" } } as const;
    const two = { kind: "memory", name: "b", fields: { value: "2" } } as const;
    const present = [two, one].map((object) => ({ ...object, id: object.name, managedBy: "f" }));
    expect(planFleet([one, two], present, { fleet: "f", prune: true, adopt: false })).toEqual({
      changes: [],
      conflicts: [],
    });
  });
});
