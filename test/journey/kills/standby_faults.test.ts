import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { buildFakeEngines, readLedger } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { type Client, openClient } from "../../harness/service/client.ts";
import { svc } from "../../harness/service/process.ts";
import { Proxy } from "../../harness/fakes/proxy.ts";
import { SQLD, SqldSite } from "../../harness/fakes/sqld.ts";
import { Machines, readState } from "../../harness/fakes/standby.ts";
import { waitUntil } from "../../harness/wait.ts";
import { createTask } from "../../harness/service/runner.ts";

vi.setConfig({ testTimeout: 600_000 });

const TAKEOVER_MAX_MS = 45_000;

describe.skipIf(SQLD === undefined)("two machines, one of them faulty (contract 18)", () => {
  it("a disconnected server ends its runs and itself before the other one starts, and writes nothing later [RUN-4]", async () => {
    await using machines = await Machines.open();
    using proxy = new Proxy(machines.place.sqld.url);
    const { first, second, api } = await machines.startPair({ SVC_DATABASE__URL: proxy.url });
    const worker = await api.call("POST /api/workers", { name: "Bob" });
    const done = join(machines.folder, "done");
    const task = await createTask(api, worker.id, `until ${done}`);
    await waitUntil("the task runs", async () => (await machines.countStarts()) === 1);
    proxy.mode = "hold";
    const began = performance.now();
    let leftAt = Infinity;
    void first.child.status.then(() => leftAt = performance.now());
    // A write that waits in the network until the other server serves.
    const late = api.send("POST /api/workers", { name: "Late" }).catch(() => null);
    await waitUntilReady(second.url);
    expect(performance.now() - began).toBeLessThan(TAKEOVER_MAX_MS);
    expect(leftAt).toBeLessThan(performance.now());
    expect(await first.child.status).toMatchObject({ code: 1 });
    expect(first.stderr).toMatch(/STOPPED WRITING.*its standby may take over/);
    proxy.mode = "pass";
    await late;
    await waitUntil("the task runs again", async () => (await machines.countStarts()) === 2);
    await Deno.writeTextFile(done, "");
    const other = await openClient(second.url);
    expect(await other.call(`GET /api/tasks/${task}/wait?timeout_ms=60000`)).toMatchObject({
      status: "completed",
      attempt: 2,
    });
    expect((await readLedger(machines.ledger)).filter(({ word }) => word === "OVERLAP")).toEqual([]);
    expect((await other.call("GET /api/workers")).map((one: { name: string }) => one.name)).toEqual(["Bob"]);
  });

  it("a server that was stopped until the other one serves ends itself when it wakes, and waits after its next start [RUN-4]", async () => {
    await using machines = await Machines.open();
    const { first, second, api } = await machines.startPair();
    await api.call("POST /api/workers", { name: "Ada" });
    first.child.kill("SIGSTOP");
    await waitUntilReady(second.url);
    const other = await openClient(second.url);
    const before = await listEvents(other);
    const late = api.send("POST /api/workers", { name: "Late" }).catch(() => ({ status: 0 }));
    first.child.kill("SIGCONT");
    const woken = performance.now();
    expect(await first.child.status).toMatchObject({ code: 1 });
    expect(performance.now() - woken).toBeLessThan(10_000);
    expect(first.stderr).toMatch(/STOPPED WRITING/);
    expect([0, 503]).toContain((await late).status);
    expect(await listEvents(other)).toEqual(before);
    const again = await machines.start("one", { standby: true });
    expect([await readState(again.url), await readState(second.url)]).toEqual(["standby", "ready"]);
  });

  it("another key, no key, and other files are each refused with the way out, and change nothing [RUN-4]", async () => {
    await using machines = await Machines.open();
    delete machines.env.SVC_AUTH__JWT_SECRET;
    await machines.start("one");
    const dataDir = machines.dataDir("two");
    await Deno.mkdir(dataDir);
    const key = join(dataDir, "secret.key");
    const serve = (env: Record<string, string> = {}) =>
      svc(["serve", "--standby"], { dataDir, env: { ...machines.env, ...env } });

    const none = await serve();
    expect([none.code, none.err]).toEqual([
      2,
      expect.stringMatching(/sign with the key \w+, and this machine has none\. Copy/),
    ]);
    await expect(Deno.stat(key)).rejects.toThrow(Deno.errors.NotFound);
    const other = await serve({ SVC_AUTH__JWT_SECRET: "a key that no other machine has, of 32 or more" });
    expect([other.code, other.err]).toEqual([
      2,
      expect.stringContaining("Set auth.jwt_secret to the value of the other machine"),
    ]);

    await Deno.copyFile(join(machines.dataDir("one"), "secret.key"), key);
    const empty = join(machines.folder, "not mounted");
    const files = await serve({ SVC_FILES_DIR: empty });
    expect([files.code, files.err]).toEqual([2, expect.stringContaining(`are not in ${empty}`)]);
    expect([...Deno.readDirSync(empty)]).toEqual([]);
    await Deno.writeTextFile(join(empty, "files.json"), '{"database":"another"}');
    const foreign = await serve({ SVC_FILES_DIR: empty });
    expect([foreign.code, foreign.err]).toEqual([2, expect.stringContaining("belong to another one")]);
  });

  it("a waiting server ends after a change of the key, until it has the new one", async () => {
    await using machines = await Machines.open();
    delete machines.env.SVC_AUTH__JWT_SECRET;
    const first = await machines.start("one");
    await Deno.mkdir(machines.dataDir("two"));
    const key = join(machines.dataDir("two"), "secret.key");
    await Deno.copyFile(join(machines.dataDir("one"), "secret.key"), key);
    const second = await machines.start("two", { standby: true });
    const api = await openClient(first.url);
    await api.call("POST /api/system/rotate-key");
    expect(await second.child.status).toMatchObject({ code: 2 });
    expect(second.stderr).toContain("this one would sign with");
    await Deno.copyFile(join(machines.dataDir("one"), "secret.key"), key);
    const again = await machines.start("two", { standby: true });
    expect(await first.end("SIGTERM")).toMatchObject({ code: 0 });
    await waitUntilReady(again.url);
  });

  it("a standby without its database server waits and reports that; a standby on a file is refused", async () => {
    await using machines = await Machines.open();
    using proxy = new Proxy(machines.place.sqld.url);
    proxy.mode = "refuse";
    const lone = await machines.start("one", { standby: true, env: { SVC_DATABASE__URL: proxy.url } });
    expect(await readState(lone.url)).toBe("standby");
    await waitUntil(
      "the standby logs its wait",
      () => lone.stderr.includes("Cannot reach the database server"),
    );
    proxy.mode = "pass";
    await waitUntilReady(lone.url);
    const dataDir = machines.dataDir("file");
    await Deno.mkdir(dataDir);
    const refused = await svc(["serve", "--standby"], { dataDir });
    expect([refused.code, refused.err]).toEqual([
      2,
      expect.stringContaining("Set database.url to a libSQL server"),
    ]);
  });
});

describe.skipIf(SQLD === undefined)(
  "a libSQL server that answers reads but no writes (facts, libSQL server 1)",
  () => {
    it("fails the heartbeat and is named with its cure; runs continue, and a restart resolves it", async () => {
      await using place = await SqldSite.open();
      using proxy = new Proxy(place.sqld.url);
      await using app = await openApp({
        config: { ...place.config, database: { url: proxy.url }, engines: buildFakeEngines() },
      });
      const worker = await app.call("POST /api/workers", { name: "Ada" });
      const task = await createTask(app, worker.id, "sleep 1");
      await app.until("execution.started");
      proxy.mode = "hold-writes";
      const cure = /answers reads but no writes\. Restart sqld/;
      await waitUntil(
        "the service reports the fault",
        async () => cure.test((await app.send("GET /readyz")).body.status),
        30_000,
      );
      expect((await app.call("GET /api/system/doctor")).checks[0]).toMatchObject({
        name: "database",
        status: "fail",
        detail: expect.stringMatching(cure),
      });
      const metrics = async () =>
        await (await app.server.fetch(new Request("http://localhost/metrics"))).text();
      expect(await metrics()).toContain("svc_database_server_well 0\n");
      expect((await app.send("GET /api/workers")).status).toBe(200);
      proxy.mode = "pass";
      await place.sqld.restart();
      await waitUntil(
        "the service is ready again",
        async () => (await app.send("GET /readyz")).status === 200,
      );
      expect(await metrics()).toContain("svc_database_server_well 1\n");
      expect(await app.call(`GET /api/tasks/${task}/wait?timeout_ms=60000`)).toMatchObject({
        status: "completed",
        attempt: 1,
      });
    });
  },
);

async function waitUntilReady(url: string): Promise<void> {
  await waitUntil("the standby serves", async () => await readState(url) === "ready", TAKEOVER_MAX_MS);
}

// Without a limit the response would be a stream.
async function listEvents(api: Client): Promise<unknown> {
  return await api.call("GET /api/events?page_size=100", undefined, { accept: "application/json" });
}
