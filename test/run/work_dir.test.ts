import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp } from "../harness/service/app.ts";
import { createTempDir } from "../harness/service/process.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { waitUntil } from "../harness/wait.ts";

const openFake = () => openApp({ config: { engines: buildFakeEngines() } });

async function run(app: App, worker: { id: string }, content = "ok") {
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
  await app.settle();
  return (await app.call("GET /api/executions"))[0];
}

const exists = (path: string) => Deno.stat(path).then(() => true, () => false);

describe("a work directory (contract-3, 20.8)", () => {
  it.each<[string, (folder: string) => string | undefined, (path: string) => Promise<void>]>([
    ["its default", () => undefined, (path) => Deno.remove(path, { recursive: true })],
    ["its own", (folder) => join(folder, "deep/dir"), (path) => Deno.remove(path, { recursive: true })],
    ["a renamed one", (folder) => join(folder, "dir"), (path) => Deno.rename(path, `${path}.old`)],
    [
      "one whose parent has gone",
      (folder) => join(folder, "a/b"),
      (path) => Deno.remove(join(path, ".."), { recursive: true }),
    ],
  ])(
    "that has gone after its creation fails the run with its path, and is not made again: %s",
    async (_, choose, remove) => {
      await using folder = await createTempDir();
      await using app = await openFake();
      const worker = await app.call("POST /api/workers", { name: "Ada", work_dir: choose(folder.path) });
      expect((await run(app, worker)).status).toBe("completed");
      await remove(worker.work_dir);
      const execution = await run(app, worker);
      expect(execution).toMatchObject({ status: "failed", failure: "spawn_failed" });
      expect(execution.error).toContain(worker.work_dir);
      expect(execution.error).toMatch(/does not exist/);
      expect(await app.call(`GET /api/workers/${worker.id}/status`)).toMatchObject({
        usable: false,
        detail: `the work directory ${worker.work_dir} does not exist`,
      });
      const { checks } = await app.call("GET /api/system/doctor");
      expect(checks.find(({ name }: { name: string }) => name === "work_dirs")).toMatchObject({
        status: "warn",
        detail: expect.stringContaining(worker.work_dir),
      });
      expect(await exists(worker.work_dir)).toBe(false);
    },
  );

  it("that has become a file or a link to nothing fails the run with its path", async () => {
    await using folder = await createTempDir();
    await using app = await openFake();
    const worker = await app.call("POST /api/workers", { name: "Ada", work_dir: join(folder.path, "dir") });
    await Deno.remove(worker.work_dir);
    await Deno.writeTextFile(worker.work_dir, "x");
    expect((await run(app, worker)).error).toBe(
      `Cannot use the work directory ${worker.work_dir}: not a directory`,
    );
    await Deno.remove(worker.work_dir);
    await Deno.symlink(join(folder.path, "nothing"), worker.work_dir);
    expect((await run(app, worker)).error).toContain(`${worker.work_dir}: it does not exist`);
  });

  const REFUSED: [string, (folder: string) => string, RegExp][] = [
    ["a file", (folder) => join(folder, "file"), /is not a directory/],
    ["below a file", (folder) => join(folder, "file/below/it"), /below a file/],
    ["a link to a file", (folder) => join(folder, "link"), /is not a directory/],
    // Not even root can create files in /proc.
    ["where none can be made", () => "/proc/no/such", /cannot be created/],
  ];

  it.each(REFUSED)("is refused when a worker is created: %s", async (_, choose, words) => {
    await using folder = await prepareFolder();
    await using app = await openFake();
    const path = choose(folder.path);
    const reply = await app.send("POST /api/workers", { name: "Ada", work_dir: path });
    expect([reply.status, reply.body.errors[0].path]).toEqual([400, "work_dir"]);
    expect(reply.body.detail).toMatch(words);
    expect(reply.body.detail).toContain(path);
    expect(await app.call("GET /api/workers")).toEqual([]);
  });

  it.each(REFUSED)(
    "is refused when a fleet is applied, and nothing is changed: %s",
    async (_, choose, words) => {
      await using folder = await prepareFolder();
      await using app = await openFake();
      const workers = [{ name: "Ada" }, { name: "Zoe", work_dir: choose(folder.path) }];
      const reply = await app.send("POST /api/fleet/apply", { fleet: { fleet: "main", workers } });
      expect([reply.status, reply.body.errors?.[0]?.path]).toEqual([400, "fleet.workers.1.work_dir"]);
      expect(reply.body.detail).toMatch(words);
      expect(await app.call("GET /api/workers")).toEqual([]);
      const left = await Array.fromAsync(Deno.readDir(join(app.dataDir, "workers"))).catch(() => []);
      expect(left).toEqual([]);
    },
  );

  it("is removed when the database does not store its worker, by a creation and by a fleet", async () => {
    await using app = await openFake();
    const { db } = app;
    const write = db.write.bind(db);
    const fail = () => Promise.reject(new Error("the disk is full"));
    const routes: [string, object][] = [
      ["POST /api/workers", { name: "Ada" }],
      ["POST /api/fleet/apply", { fleet: { workers: [{ name: "Ada" }] } }],
    ];
    for (const [route, body] of routes) {
      Object.assign(db, { write: fail });
      const { status } = await app.send(route, body);
      Object.assign(db, { write });
      const left = [...Deno.readDirSync(app.server.parts.paths.workers)];
      expect([route, status, left]).toEqual([route, 500, []]);
    }
  });

  it("is made or refused when a worker returns from a runner, by an update and by a fleet", async () => {
    await using folder = await prepareFolder();
    await using app = await openFake();
    const make = (name: string, work_dir: string) =>
      app.call("POST /api/workers", { name, work_dir, runs_on: ["gpu"] });
    const good = await make("Ada", join(folder.path, "good"));
    const bad = await make("Bob", join(folder.path, "file"));
    expect(await exists(good.work_dir)).toBe(false);
    expect((await app.send(`PUT /api/workers/${good.id}`, { runs_on: [] })).status).toBe(200);
    expect(await exists(good.work_dir)).toBe(true);
    const reply = await app.send(`PUT /api/workers/${bad.id}`, { runs_on: [] });
    expect([reply.status, reply.body.errors?.[0]?.path]).toEqual([400, "work_dir"]);
    expect((await app.call(`GET /api/workers/${bad.id}`)).runs_on).toEqual(["gpu"]);
    const workers = [{ name: "Bob", work_dir: bad.work_dir }];
    const applied = await app.send("POST /api/fleet/apply", {
      fleet: { fleet: "main", workers },
      adopt: true,
    });
    expect([applied.status, applied.body.errors?.[0]?.path]).toEqual([400, "fleet.workers.0.work_dir"]);
  });

  it("is made again at its default path after a restore, which does not include it", async () => {
    await using folder = await createTempDir();
    let worker;
    {
      await using app = await openApp({ dataDir: folder.path, config: { engines: buildFakeEngines() } });
      worker = await app.call("POST /api/workers", { name: "Ada" });
    }
    await Deno.remove(join(folder.path, "workers"), { recursive: true });
    await using app = await openApp({ dataDir: folder.path, config: { engines: buildFakeEngines() } });
    expect((await run(app, worker)).status).toBe("completed");
  });
});

async function prepareFolder() {
  const folder = await createTempDir();
  await Deno.writeTextFile(join(folder.path, "file"), "x");
  await Deno.symlink(join(folder.path, "file"), join(folder.path, "link"));
  return folder;
}

describe("lists of workers (contract-3, 20.4)", () => {
  it("look for no program and no directory on the disk while all engines can be used", async () => {
    await using folder = await createTempDir();
    const command = join(folder.path, "agent");
    await Deno.writeTextFile(command, "#!/bin/sh\ncat\n", { mode: 0o755 });
    await using app = await openApp({
      config: { engines: { ...buildFakeEngines(), mine: { kind: "command", command } } },
    });
    const { id, work_dir } = await app.call("POST /api/workers", { name: "Ada", engine: "mine" });
    for (let index = 0; index < 20; index++) {
      await app.call("POST /api/workers", { name: `W${index}`, engine: "mine" });
    }
    const routes = [
      "GET /api/workers",
      "GET /api/workers?limit=5",
      `GET /api/workers/${id}`,
      "GET /api/overview",
    ];
    const looks = await countLooks([command, work_dir], async () => {
      for (const route of routes) await app.send(route);
    });
    expect(looks).toBe(0);
    // A missing program is found by the run.
    await Deno.remove(command);
    expect(await countLooks([command], () => app.call("GET /api/workers"))).toBe(0);
    expect((await run(app, { id })).failure).toBe("spawn_failed");
    const statuses = async () =>
      new Set((await app.call("GET /api/workers")).map(({ status }: { status: string }) => status));
    expect(await statuses()).toEqual(new Set(["unavailable"]));
    // The list looks again after a second or a change.
    expect(await countLooks([command], statuses)).toBeLessThanOrEqual(1);
    await Deno.writeTextFile(command, "#!/bin/sh\ncat\n", { mode: 0o755 });
    await waitUntil("the program is found", async () => (await statuses()).has("idle"));
    expect(await countLooks([command], statuses)).toBe(0);
    // The doctor finds a missing program, too.
    await Deno.remove(command);
    await app.call("GET /api/system/doctor");
    await waitUntil("the list shows it", async () => (await statuses()).has("unavailable"));
  });
});

/** Counts how often the service looks for one of these paths. */
async function countLooks(paths: readonly string[], work: () => Promise<unknown>): Promise<number> {
  let looks = 0;
  const { stat, statSync, lstat, lstatSync } = Deno;
  const watch = <T extends (path: string | URL) => unknown>(real: T) =>
    ((path: string | URL) => {
      if (paths.includes(String(path))) looks++;
      return real(path);
    }) as T;
  Object.assign(Deno, {
    ...{ stat: watch(stat), statSync: watch(statSync), lstat: watch(lstat), lstatSync: watch(lstatSync) },
  });
  try {
    await work();
  } finally {
    Object.assign(Deno, { stat, statSync, lstat, lstatSync });
  }
  return looks;
}
