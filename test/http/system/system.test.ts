import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { findStartOfDay } from "../../../src/domain/system/system.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { expectCounters } from "../../harness/model/counters.ts";
import { buildBearer, createUser, logIn } from "../../harness/model/people.ts";
import { createTask } from "../../harness/service/runner.ts";
import { ctl } from "../../harness/terminal.ts";
import { storeSetting } from "../../../src/store/db/setting.ts";
import { startRun } from "../../harness/service/run.ts";

const OVERVIEW = "GET /api/system/overview";
const PASSWORD = "PUT /api/system/password";
const FRESH = "a longer secret";

describe("GET /api/system/overview (interface 4.2)", () => {
  it("says that a restore paused all schedules, until a user resumes them", async () => {
    await using app = await openApp();
    expect((await app.call(OVERVIEW)).schedules_paused).toBe(false);
    await app.db.write([storeSetting("schedules_paused", "1")]);
    expect((await app.call(OVERVIEW)).schedules_paused).toBe(true);
    expect((await ctl(app, "system overview", { terminal: true })).out).toMatch(
      /schedules.*paused by a restore/,
    );
    await app.call("POST /api/system/resume", {});
    expect((await app.call(OVERVIEW)).schedules_paused).toBe(false);
  });

  it("counts workers, tasks and executions by status, and lists the latest runs", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    expect(await app.call(OVERVIEW)).toMatchObject({
      state: "ready",
      workers: { total: 0, idle: 0, working: 0, paused: 0 },
      tasks: { total: 0 },
      executions: { total: 0, pending: 0, running: 0, completed: 0, failed: 0 },
      usage_today: { executions: 0, failed: 0, input_tokens: null, workers: [] },
      recent_executions: [],
    });
    const [ada, , eve] = await Promise.all(
      ["Ada", "Bob", "Eve"].map((name) => app.call("POST /api/workers", { name })),
    );
    await app.call(`PUT /api/workers/${eve.id}`, { paused: true });
    const task = (type: string, instruction: string, rest = {}) =>
      app.call("POST /api/tasks", { message_id: "script", worker_id: ada.id, type, instruction, ...rest });
    await task("immediate", `say ${"x".repeat(300)}`);
    await app.settle();
    await task("immediate", "exit 3");
    await app.settle();
    await task("scheduled", "later", { cron: "0 0 1 1 *" });
    await task("scheduled", "never", { cron: "0 0 31 2 *" });
    await task("immediate", "sleep 30");
    await app.until("execution.started", 3);
    const overview = await app.call(OVERVIEW);
    expect(overview).toMatchObject({
      workers: { total: 3, idle: 1, working: 1, paused: 1 },
      tasks: { total: 5, scheduled: 1, pending: 0, running: 1, completed: 1, failed: 1, cancelled: 1 },
      executions: { total: 3, pending: 0, running: 1, completed: 1, failed: 1 },
      usage_today: { executions: 2, failed: 1, workers: [{ worker_name: "Ada", executions: 2, failed: 1 }] },
    });
    expect(overview.recent_executions.map((one: { status: string }) => one.status)).toEqual([
      "running",
      "failed",
      "completed",
    ]);
    expect(overview.recent_executions[2].instruction).toHaveLength(200);
    await expectCounters(app.db);
  });

  it("a paused worker with an active run counts as working, as in its status", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { id } = await app.call("POST /api/workers", { name: "Ada" });
    await createTask(app, id, "sleep 30");
    await app.until("execution.started");
    await app.call(`PUT /api/workers/${id}`, { paused: true });
    const none = { total: 0, idle: 0, working: 0, waiting: 0, paused: 0 };
    expect((await app.call(OVERVIEW)).workers).toEqual({ ...none, total: 1, working: 1 });
    await app.call(`DELETE /api/workers/${id}`);
    expect((await app.call(OVERVIEW)).workers).toEqual(none);
    await expectCounters(app.db);
  });

  it("counts usage by the day of the service's time zone, per worker", async () => {
    const clock = new TestClock("2026-03-10T03:50:00Z");
    // Midnight in Kathmandu is 18:15 UTC.
    await using app = await openApp({ clock, config: { scheduler: { time_zone: "Asia/Kathmandu" } } });
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    const say = async () => {
      await app.call(`POST /api/local/sessions/${id}/messages`, { content: "@Ada hello" });
      await app.settle();
    };
    const used = async () => (await app.call(OVERVIEW)).usage_today;
    await say();
    clock.jump("2026-03-10T18:14:59Z");
    await say();
    expect(await used()).toMatchObject({ executions: 2, since: Date.parse("2026-03-09T18:15:00Z") });
    clock.jump("2026-03-10T18:15:01Z");
    expect(await used()).toMatchObject({ executions: 0, since: Date.parse("2026-03-10T18:15:00Z") });
    await say();
    expect(await used()).toMatchObject({ executions: 1, workers: [{ worker_name: "Ada", executions: 1 }] });
  });
});

describe("findStartOfDay()", () => {
  it.each([
    ["2026-03-08T12:00:00Z", "America/New_York", "2026-03-08T05:00:00Z"], // the clock goes forward at 2
    ["2026-11-01T12:00:00Z", "America/New_York", "2026-11-01T04:00:00Z"], // and back
    ["2026-04-04T20:00:00Z", "Australia/Lord_Howe", "2026-04-04T13:00:00Z"], // by half an hour
    ["2026-01-01T00:00:00Z", "UTC", "2026-01-01T00:00:00Z"],
    ["2026-06-30T23:59:59Z", "Asia/Kathmandu", "2026-06-30T18:15:00Z"],
  ])("of %s in %s is %s", (now, zone, start) => {
    expect(new Date(findStartOfDay(Date.parse(now), zone)).toISOString()).toBe(new Date(start).toISOString());
  });
});

describe("GET /api/system/executions (interface 4.2, interface 8)", () => {
  it("lists the coordinator's runs, newest first, within its bounds", async () => {
    await using app = await openApp();
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    for (let i = 0; i < 12; i++) {
      await app.call(`POST /api/local/sessions/${id}/messages`, { content: `@Ada ${i}` });
      await app.settle();
    }
    const runs = await app.call("GET /api/system/executions");
    expect(runs).toHaveLength(10);
    expect(runs[0]).toMatchObject({
      session_key: `local:${id}`,
      engine: "rules",
      status: "completed",
      task_count: 1,
      failure: "",
      usage: { input_tokens: null },
    });
    expect(runs[0].id > runs[1].id).toBe(true);
    expect(await app.call("GET /api/system/executions?limit=1")).toEqual([runs[0]]);
    expect(await app.call("GET /api/system/executions?limit=100")).toHaveLength(12);
    for (const limit of ["0", "-1", "101", "1e9", "ten", ""]) {
      expect((await app.send(`GET /api/system/executions?limit=${limit}`)).status, limit).toBe(400);
    }
    expect(ada.id).toBeTruthy();
  });
});

describe("PUT /api/system/password (contract 2, contract 5)", () => {
  it("ends older access tokens, refresh tokens and streams; the new password logs in [AUT-6, AUT-7]", async () => {
    await using app = await openStored();
    const old = await logIn(app, "admin", app.server.generatedPassword ?? "");
    const reply = await app.send(
      PASSWORD,
      { current_password: app.server.generatedPassword, new_password: FRESH },
      buildBearer(old.access_token),
    );
    expect(reply).toMatchObject({ status: 200, body: { username: "admin", updated_at: expect.any(Number) } });
    expect((await app.send("GET /api/workers", undefined, buildBearer(old.access_token))).status).toBe(401);
    expect((await app.send("POST /api/auth/refresh", { refresh_token: old.refresh_token })).status).toBe(401);
    expect(
      (await app.send("POST /api/auth/login", { username: "admin", password: app.server.generatedPassword }))
        .status,
    )
      .toBe(401);
    const fresh = await logIn(app, "admin", FRESH);
    expect((await app.send("GET /api/workers", undefined, buildBearer(fresh.access_token))).status).toBe(200);
    const events = await app.db.read("select actor from journal where kind = 'auth.password_changed'");
    expect(events).toEqual([{ actor: "user:admin" }]);
  });

  it("is effective after a restart", async () => {
    const first = await openStored();
    await first.call(PASSWORD, { new_password: FRESH });
    await first.stop();
    await using second = await openStored(first.dataDir);
    expect(second.server.generatedPassword).toBeNull();
    await logIn(second, "admin", FRESH);
    await second.stop();
    await Deno.remove(first.dataDir, { recursive: true });
  });

  it("requires the current password with a login token, counts wrong ones, and needs none with the signing key", async () => {
    // Wrong passwords are counted per minute of the service's clock.
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openStored(undefined, { login_failures_per_minute: 3 }, {}, clock);
    const { access_token } = await logIn(app, "admin", app.server.generatedPassword ?? "");
    const change = (body: object) =>
      app.send(PASSWORD, { new_password: FRESH, ...body }, buildBearer(access_token));
    expect((await change({})).body.errors).toMatchObject([{ path: "current_password" }]);
    for (let i = 0; i < 3; i++) {
      expect((await change({ current_password: "wrong" })).body.errors).toMatchObject([{
        path: "current_password",
      }]);
    }
    const refused = await change({ current_password: app.server.generatedPassword });
    expect(refused).toMatchObject({ status: 429, body: { code: "rate_limited" } });
    expect((await app.send(PASSWORD, { new_password: FRESH })).status).toBe(200);
  });

  it("is 409 while the configuration or the environment sets the password, and names which", async () => {
    await using configured = await openApp();
    expect(await configured.send(PASSWORD, { new_password: FRESH })).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("auth.password_hash") },
    });
    await using fromEnvironment = await openApp({ password: "from outside" });
    expect(await fromEnvironment.send(PASSWORD, { new_password: FRESH })).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("SVC_AUTH_PASSWORD") },
    });
  });

  it("accepts ten characters, and refuses nine and anything but text", async () => {
    await using app = await openStored();
    for (const new_password of ["", "nine char", "é".repeat(9), "x".repeat(1_001), 5, null, undefined]) {
      expect((await app.send(PASSWORD, { new_password })).status, String(new_password)).toBe(400);
    }
    expect((await app.send(PASSWORD, { new_password: "é".repeat(10) })).status).toBe(200);
  });

  it("refuses agents, whatever their scopes [SCP-4]", async () => {
    await using app = await openStored(undefined, {}, { engines: buildFakeEngines() });
    const { headers } = await startRun(app, ["*:*"]);
    const cases = [[PASSWORD, { new_password: FRESH }], ["POST /api/system/backup", {}]] as const;
    for (const [route, body] of cases) {
      expect(await app.send(route, body, headers)).toMatchObject({
        status: 403,
        body: { code: "forbidden" },
      });
    }
  });

  it("a bound run sees only its conversation, and nothing about the machine", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const other = await app.call("POST /api/workers", { name: "Other" });
    await createTask(app, other.id, "ok");
    await app.settle();
    const { headers } = await startRun(app, ["read:system"]);
    const overview = (await app.send(OVERVIEW, undefined, headers)).body;
    expect(overview.recent_executions).toHaveLength(1);
    expect(overview.executions.total).toBe(2);
    expect((await app.send("GET /api/system/executions", undefined, headers)).body).toHaveLength(1);
    expect((await app.send("GET /api/system/doctor", undefined, headers)).status).toBe(403);
    const unscoped = await startRun(app, ["read:tasks"]);
    expect((await app.send(OVERVIEW, undefined, unscoped.headers)).body.detail).toContain("read:system");
  });
});

describe("GET /api/system/doctor (contract 5)", () => {
  it("checks everything, and has a remedy for each fault", async () => {
    await using app = await openApp();
    const { status, checks } = await app.call("GET /api/system/doctor");
    const of = (name: string) => checks.find((check: { name: string }) => check.name === name);
    expect(of("database")).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/SQLite 3\.\d+.*sound/),
      hint: "",
    });
    expect(of("stages").detail).toContain("dispatcher");
    expect(of("backup")).toMatchObject({
      status: "warn",
      hint: expect.stringContaining("svc ctl system backup"),
    });
    expect(of("engines")).toMatchObject({ status: "ok", detail: expect.stringContaining("echo") });
    expect(of("open_files").detail).toMatch(/^the limit of \d+ open files allows \d+ connections/);
    expect(["warn", "ok"]).toContain(status);
    for (const check of checks) expect(check.hint === "", check.name).toBe(check.status === "ok");
  });

  it("finds a missing engine, an impossible work directory, and files that other users can read", async () => {
    await using app = await openApp({
      config: { engines: { default: "gone", gone: { kind: "command", command: "no-such-program" } } },
    });
    await app.call("POST /api/workers", { name: "Ada", work_dir: `${app.dataDir}-none/of/these` });
    await Deno.remove(`${app.dataDir}-none`, { recursive: true });
    await Deno.chmod(app.dataDir, 0o755);
    const { status, checks } = await app.call("GET /api/system/doctor");
    expect(status).toBe("fail");
    const found = Object.fromEntries(checks.map((check: { name: string }) => [check.name, check]));
    expect(found).toMatchObject({
      engines: { status: "fail", detail: expect.stringContaining("no-such-program") },
      work_dirs: { status: "warn", detail: expect.stringContaining("of/these") },
      permissions: { status: "fail", hint: expect.stringContaining("chmod go=") },
    });
  });

  it("warns of too few open files for server.max_connections (contract 8.17)", async () => {
    for (const [max_connections, status] of [[10, "ok"], [1_000_000, "warn"]] as const) {
      await using app = await openApp({ config: { server: { max_connections } } });
      const { checks } = await app.call("GET /api/system/doctor");
      const found = checks.find((check: { name: string }) => check.name === "open_files");
      expect([found.status, found.hint]).toEqual([
        status,
        status === "ok" ? "" : expect.stringContaining("LimitNOFILE"),
      ]);
    }
  });

  it("warns of work without a suitable worker", async () => {
    const clock = new TestClock();
    await using app = await openApp({
      clock,
      config: { engines: buildFakeEngines(), limits: { max_concurrent_runs: 1 } },
    });
    const [ada, bob] = await Promise.all(
      ["Ada", "Bob"].map((name) => app.call("POST /api/workers", { name })),
    );
    for (const { id } of [ada, bob]) {
      await createTask(app, id, "sleep 30");
    }
    await app.until("execution.started");
    clock.advance(6 * 60_000);
    const queue = (await app.call("GET /api/system/doctor")).checks.find((one: { name: string }) =>
      one.name === "queue"
    );
    expect(queue).toMatchObject({
      status: "warn",
      hint: expect.stringContaining("max_concurrent_runs is 1"),
    });
  });

  it("warns of tasks that no runner and no launcher can take, with their labels and the way out", async () => {
    const launchers = { gpu: { labels: ["gpu"], command: ["false"] } };
    await using app = await openApp({ config: { engines: buildFakeEngines(), launchers } });
    const examineQueue = async () =>
      (await app.call("GET /api/system/doctor")).checks.find(({ name }: { name: string }) =>
        name === "queue"
      );
    for (const runs_on of [["nosuch"], ["nosuch"], ["gpu"]]) {
      const { id } = await app.call("POST /api/workers", { name: crypto.randomUUID(), runs_on });
      await createTask(app, id, "say hello");
    }
    await app.settle();
    const queue = await examineQueue();
    expect(queue).toMatchObject({ status: "warn", hint: expect.stringMatching(/runner add.*worker update/) });
    expect(queue.detail).toMatch(
      /Waiting without a runner: 2 \(no runner with the labels nosuch exists\); 1 \(/,
    );
    expect(queue.detail).toMatch(
      /the labels gpu exists, and the launcher gpu cannot start one: .*Set home none/,
    );
    for (const { id } of await app.call("GET /api/queue")) await app.call(`POST /api/tasks/${id}/cancel`, {});
    expect(await examineQueue()).toMatchObject({ status: "ok" });
  });
});

function openStored(
  dataDir?: string,
  auth: object = {},
  config: object = {},
  clock: Clock = systemClock,
): Promise<App> {
  return openApp({
    clock,
    ...(dataDir === undefined ? {} : { dataDir }),
    config: { ...config, auth: { password_hash: "", ...auth } },
  });
}

it("a new password of the operator keeps the logins of users (contract 9)", async () => {
  await using app = await openStored();
  const ada = await createUser(app, "Ada", "viewer");
  await app.call(PASSWORD, { new_password: FRESH });
  expect((await app.send("POST /api/auth/refresh", { refresh_token: ada.refresh })).status).toBe(200);
});
