import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { unpackArchive } from "../../../src/base/archive.ts";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createTempDir, svc } from "../../harness/service/process.ts";
import { ctl } from "../../harness/terminal.ts";

const BACKUP = "POST /api/system/backup";

describe("a backup without the signing key (contract 8.16) [BAK-9]", () => {
  it("requires the caller's password for the key, so a stolen token is not enough; a wrong one names the field [BAK-9]", async () => {
    await using app = await openApp();
    const { access_token } = await app.call("POST /api/auth/login", {
      username: "admin",
      password: PASSWORD,
    });
    const stolen = { authorization: `Bearer ${access_token}` };
    const wrong: [object, RegExp][] = [
      [{ include_key: true }, /is required/],
      [{ include_key: true, password: "wrong" }, /is wrong/],
    ];
    for (const [body, words] of wrong) {
      expect(await app.send(BACKUP, body, stolen)).toMatchObject({
        status: 400,
        body: {
          code: "invalid_request",
          errors: [{ path: "password", message: expect.stringMatching(words) }],
        },
      });
    }
    const key = (await Deno.readTextFile(app.server.parts.paths.secretKey)).trim();
    const asked: [object, boolean][] = [
      [{}, false],
      [{ password: PASSWORD }, false],
      [{ include_key: false }, false],
      [{ include_key: true, password: PASSWORD }, true],
    ];
    for (const [body, holdsKey] of asked) {
      const { status, body: archive } = await app.send(BACKUP, body, stolen);
      expect(status).toBe(200);
      expect(archive.includes("secret.key"), JSON.stringify(body)).toBe(holdsKey);
      expect(archive.includes(key), JSON.stringify(body)).toBe(holdsKey);
    }
    const told = await app.db.read<{ data: string }>("select data from journal where kind = 'system.backup'");
    expect(told.map(({ data }) => JSON.parse(data).include_key)).toEqual([false, false, false, true]);
  });

  it("limits password attempts like logins: the eleventh attempt of a minute is refused, even with the correct password [BAK-9]", async () => {
    const clock = new TestClock("2026-01-05T08:00:10Z");
    await using app = await openApp({ clock });
    const statuses = async (password: string, times: number) => {
      const all = [];
      for (let i = 0; i < times; i++) {
        all.push((await app.send(BACKUP, { include_key: true, password })).status);
      }
      return all;
    };
    expect(await statuses("wrong", 9)).toEqual(Array(9).fill(400));
    // The correct password resets the count of wrong ones.
    expect(await statuses(PASSWORD, 1)).toEqual([200]);
    expect(await statuses("wrong", 10)).toEqual(Array(10).fill(400));
    expect(await statuses(PASSWORD, 1)).toEqual([429]);
    clock.advance(50_000);
    expect(await statuses(PASSWORD, 1)).toEqual([200]);
  });

  it("ctl takes the password from stdin or asks on a terminal, and never in a pipe", async () => {
    await using app = await openApp();
    await using folder = await createTempDir();
    const backup = (name: string, flags: string[], options: Parameters<typeof ctl>[2] = {}) =>
      ctl(app, ["system", "backup", join(folder.path, name), ...flags], options);
    expect(await backup("a.tar", ["--include-key", "--password-stdin"], { stdin: `${PASSWORD}\n` }))
      .toMatchObject({ code: 0 });
    const asked = await backup("b.tar", ["--include-key"], { terminal: true, stdin: `${PASSWORD}\n` });
    expect(asked).toMatchObject({ code: 0, err: expect.stringContaining("Password: [hidden]") });
    expect(asked.err + asked.out).not.toContain(PASSWORD);
    for (const name of ["a.tar", "b.tar"]) {
      expect(await listNames(join(folder.path, name), folder.path)).toContain("secret.key");
    }
    expect(await backup("c.tar", ["--include-key"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("--password-stdin"),
    });
    expect(await backup("c.tar", ["--include-key", "--password-stdin"], { stdin: "wrong\n" })).toMatchObject({
      code: 2,
      err: expect.stringContaining("password"),
    });
    expect((await backup("c.tar", ["--password-stdin"], { stdin: "x\n" })).code).toBe(2);
    await expect(Deno.stat(join(folder.path, "c.tar"))).rejects.toThrow();
  });

  it("restored without the key the service creates a new one, logs it, and every login ends [BAK-9]", async () => {
    await using folder = await createTempDir();
    const [first, second] = [join(folder.path, "first"), join(folder.path, "second")];
    const file = join(folder.path, "backup.tar");
    let refresh_token = "";
    let key = "";
    {
      await using app = await openApp({ dataDir: first });
      await app.call("POST /api/workers", { name: "Ada" });
      ({ refresh_token } = await app.call("POST /api/auth/login", { username: "admin", password: PASSWORD }));
      key = await Deno.readTextFile(app.server.parts.paths.secretKey);
      expect((await ctl(app, ["system", "backup", file])).code).toBe(0);
    }
    await Deno.mkdir(second);
    const restored = await svc(["restore", file, "--yes"], { dataDir: second });
    expect(restored, restored.err).toMatchObject({
      code: 0,
      err: expect.stringMatching(/no signing key.*every login ends/),
    });
    await using app = await openApp({ dataDir: second });
    expect(await app.call("GET /api/workers")).toMatchObject([{ name: "Ada" }]);
    expect(await Deno.readTextFile(app.server.parts.paths.secretKey)).not.toBe(key);
    expect((await app.send("POST /api/auth/refresh", { refresh_token })).status).toBe(401);
  });
});

it.each([true, false])(
  "a secret is readable after a restore only with its key: %s [KEY-1]",
  async (withKey) => {
    await using folder = await createTempDir();
    const [first, second] = [join(folder.path, "first"), join(folder.path, "second")];
    const file = join(folder.path, "backup.tar");
    {
      await using app = await openApp({ dataDir: first });
      await app.call("PUT /api/secrets/key", { value: "canary of a backup" });
      const response = await fetch(`${app.url}/api/system/backup`, {
        method: "POST",
        headers: { authorization: `Bearer ${await app.token()}`, "content-type": "application/json" },
        body: JSON.stringify(withKey ? { include_key: true, password: PASSWORD } : {}),
      });
      const archive = new Uint8Array(await response.arrayBuffer());
      expect(new TextDecoder("latin1").decode(archive)).not.toContain("canary of a backup");
      await Deno.writeFile(file, archive);
    }
    await Deno.mkdir(second);
    expect((await svc(["restore", file, "--yes"], { dataDir: second })).code).toBe(0);
    await using app = await openApp({ dataDir: second });
    expect(await app.server.parts.secrets.read("key")).toEqual(
      withKey ? { state: "value", value: "canary of a backup" } : { state: "lost" },
    );
    await app.call("PUT /api/secrets/key", { value: "set again" });
    expect(await app.server.parts.secrets.read("key")).toEqual({ state: "value", value: "set again" });
  },
);

describe("svc restore --paused (contract 8.16) [BAK-11]", () => {
  it("fires nothing until system resume, then missed times count as missed [BAK-11]", async () => {
    await using folder = await createTempDir();
    const [first, second] = [join(folder.path, "first"), join(folder.path, "second")];
    const file = join(folder.path, "backup.tar");
    const clock = new TestClock();
    {
      await using app = await openApp({ dataDir: first, clock });
      const { id } = await app.call("POST /api/workers", { name: "Ada" });
      const task = { worker_id: id, message_id: "clone", instruction: "tick" };
      await app.call("POST /api/tasks", { ...task, type: "scheduled", cron: "* * * * *" });
      const at = clock.now() + 60_000;
      await app.call("POST /api/tasks", { ...task, type: "countdown", scheduled_at: at });
      expect((await ctl(app, ["system", "backup", file])).code).toBe(0);
    }
    await Deno.mkdir(second);
    const restored = await svc(["restore", file, "--yes", "--paused"], { dataDir: second });
    expect(restored, restored.err).toMatchObject({ code: 0, err: expect.stringContaining("system resume") });
    clock.advance(10 * 60_000);
    await using app = await openApp({ dataDir: second, clock });
    for (let minute = 0; minute < 5; minute++) {
      clock.advance(60_000);
      await runRounds(app, 2);
    }
    expect(await app.call("GET /api/executions")).toEqual([]);
    const check = async () => {
      const { checks } = await app.call("GET /api/system/doctor");
      return checks.find((one: { name: string }) => one.name === "schedules");
    };
    expect(await check()).toMatchObject({ status: "warn", hint: expect.stringContaining("system resume") });
    // A pause is no fault of the scheduler.
    expect((await app.send("GET /readyz")).status).toBe(200);
    expect(await ctl(app, "system resume --json")).toMatchObject({
      code: 0,
      out: '{"resumed":true}\n',
    });
    await runRounds(app, 2);
    await app.settle();
    expect(await app.call("GET /api/executions")).toHaveLength(2);
    expect(await app.db.read("select kind from journal where kind = 'task.missed'")).toHaveLength(1);
    expect(await app.db.read("select kind from journal where kind = 'system.resumed'")).toHaveLength(1);
    expect(await check()).toMatchObject({ status: "ok" });
    expect(await ctl(app, "system resume")).toMatchObject({
      code: 0,
      err: expect.stringContaining("no schedule was paused"),
    });
  });
});

/** Runs `count` rounds of the scheduler. */
async function runRounds(app: App, count: number): Promise<void> {
  const scheduler = app.server.stages.find(({ name }) => name === "scheduler");
  const until = (scheduler?.rounds ?? 0) + count;
  while ((scheduler?.rounds ?? until) < until) {
    scheduler?.wake();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function listNames(archive: string, folder: string): Promise<string[]> {
  const to = join(folder, `unpacked-${crypto.randomUUID()}`);
  await Deno.mkdir(to);
  return await unpackArchive((await Deno.open(archive)).readable, to);
}
