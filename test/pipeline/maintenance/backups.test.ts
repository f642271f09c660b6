import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { unpackArchive } from "../../../src/base/archive.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { createTempDir } from "../../harness/service/process.ts";

const HOUR = 3_600_000;

describe("scheduled backups (contract 8.16) [BAK-10]", () => {
  it("are made at the cron times without the key, readable by their owner only; the newest and foreign files stay [BAK-10]", async () => {
    await using folder = await createTempDir();
    const dir = join(folder.path, "made", "here");
    const clock = new TestClock("2026-01-05T02:30:00Z");
    await using app = await openApp({ clock, config: settings(dir) });
    await until(app, clock, () => Promise.resolve(Date.parse("2026-01-05T02:59:00Z") <= clock.now()), 60_000);
    await expect(Deno.stat(dir)).rejects.toThrow();
    for (let day = 1; day <= 3; day++) {
      await until(app, clock, async () => await made(app) === day, HOUR);
      if (day === 1) await Deno.writeTextFile(join(dir, "svc-20200101-000000.tar"), "an operator's own");
      if (day === 2) {
        await Deno.writeTextFile(join(dir, ".svc-scheduled-20200101-000000.tar.part"), "of a kill");
      }
    }
    await until(app, clock, async () => (await filesIn(dir)).length === 3, 0);
    const names = await filesIn(dir);
    expect(names).toEqual([
      "svc-20200101-000000.tar",
      expect.stringMatching(/^svc-scheduled-20260106-03\d{4}\.tar$/),
      expect.stringMatching(/^svc-scheduled-20260107-03\d{4}\.tar$/),
    ]);
    const last = join(dir, names[2] ?? "");
    expect((await Deno.stat(last)).mode ?? 0).toBe(0o100600);
    const unpacked = join(folder.path, "unpacked");
    await Deno.mkdir(unpacked);
    const held = await unpackArchive((await Deno.open(last)).readable, unpacked);
    expect(held).toEqual(expect.arrayContaining(["manifest.json", "svc.db"]));
    expect(held).not.toContain("secret.key");
    expect(await doctor(app)).toMatchObject({ status: "ok" });
  });

  it("are made once at the start when a time passed while the service was down [BAK-10]", async () => {
    await using folder = await createTempDir();
    const dataDir = join(folder.path, "data");
    const dir = join(folder.path, "out");
    const clock = new TestClock("2026-01-05T02:30:00Z");
    const options = { clock, dataDir, config: settings(dir) };
    {
      await using app = await openApp(options);
      await until(app, clock, async () => await setting(app, "backup_schedule_at") !== null, 0);
    }
    clock.advance(50 * HOUR);
    await using app = await openApp(options);
    await until(app, clock, async () => await made(app) === 1, 0);
    await until(app, clock, async () => (await filesIn(dir)).length === 1, 0);
    for (let i = 0; i < 10; i++) await until(app, clock, () => Promise.resolve(true), 60_000);
    expect(await made(app)).toBe(1);
  });

  it("record a failure in the journal and the doctor's report, leave no file, and retry at the next scheduled time [BAK-10]", async () => {
    await using folder = await createTempDir();
    const dir = join(folder.path, "out");
    await Deno.writeTextFile(dir, "no directory");
    const clock = new TestClock("2026-01-05T02:59:00Z");
    await using app = await openApp({ clock, config: settings(dir) });
    const failed = async () =>
      await app.db.read<{ data: string }>("select data from journal where kind = 'system.backup_failed'");
    await until(app, clock, async () => (await failed()).length === 1, 60_000);
    expect(await doctor(app)).toMatchObject({
      status: "fail",
      detail: expect.stringContaining("scheduled backup failed"),
    });
    expect(await Deno.readTextFile(dir)).toBe("no directory");
    await Deno.remove(dir);
    await until(app, clock, async () => await setting(app, "backup_fault") === "", HOUR);
    expect(await filesIn(dir)).toHaveLength(1);
    expect(await failed()).toHaveLength(1);
    expect(await doctor(app)).toMatchObject({ status: "ok" });
  });
});

function settings(dir: string) {
  return { scheduler: { time_zone: "UTC" }, backup: { cron: "0 3 * * *", keep: 2, dir } };
}

/** Lets time pass in steps with a round of the stage after each, until `done`. */
async function until(
  app: App,
  clock: TestClock,
  done: () => Promise<boolean>,
  stepMs: number,
): Promise<void> {
  const stage = app.server.stages.find(({ name }) => name === "backup");
  for (let i = 0; i < 400; i++) {
    const before = stage?.rounds ?? 0;
    clock.advance(stepMs);
    stage?.wake();
    while (stage !== undefined && (stage.rounds === before || !stage.idle)) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    if (await done()) return;
  }
  throw new Error("It did not come to this");
}

async function made(app: App): Promise<number> {
  return (await app.db.read("select kind from journal where kind = 'system.backup'")).length;
}

async function setting(app: App, name: string): Promise<string | null> {
  const row = await app.db.first<{ value: string }>("select value from setting where name = ?", [name]);
  return row?.value ?? null;
}

async function doctor(app: App): Promise<unknown> {
  const { checks } = await app.call("GET /api/system/doctor");
  return checks.find((one: { name: string }) => one.name === "backup");
}

async function filesIn(dir: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(dir))).map(({ name }) => name).sort();
}
