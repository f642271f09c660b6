import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Database } from "../../../src/store/db/database.ts";
import { findOwner } from "../../../src/store/db/database_owner.ts";
import { openApp } from "../../harness/service/app.ts";
import { type Client, openClient } from "../../harness/service/client.ts";
import { TestClock } from "../../harness/clock.ts";
import { expectCounters } from "../../harness/model/counters.ts";
import { svc } from "../../harness/service/process.ts";
import { SQLD, SqldSite } from "../../harness/fakes/sqld.ts";
import { Machines } from "../../harness/fakes/standby.ts";
import { waitUntil } from "../../harness/wait.ts";

let place: SqldSite;

beforeAll(async () => {
  if (SQLD !== undefined) place = await SqldSite.open();
});

afterAll(async () => {
  await place?.[Symbol.asyncDispose]();
});

describe.skipIf(SQLD === undefined)("the whole service on a real libSQL server", () => {
  it("routes a message to its reply, and keeps all data over a restart", async () => {
    const { config } = place;
    let sessionId = "";
    {
      await using app = await openApp({ config });
      await app.call("POST /api/workers", { name: "Ada" });
      const { id } = await app.call("POST /api/local/sessions");
      sessionId = id;
      await app.call(`POST /api/local/sessions/${id}/messages`, { content: "@Ada hello" });
      await app.settle();
    }
    await using app = await openApp({ config });
    const messages = await app.call(`GET /api/local/sessions/${sessionId}/messages`);
    expect(messages.map((one: { content: string }) => one.content)).toEqual(["@Ada hello", "hello"]);
    expect(await app.call("GET /api/executions")).toMatchObject([{ status: "completed" }]);
    expect(await app.call("GET /api/system/overview")).toMatchObject({
      workers: { total: 1, idle: 1 },
      tasks: { completed: 1 },
      executions: { total: 1, completed: 1 },
      usage_today: { executions: 1, workers: [{ worker_name: "Ada" }] },
    });
    expect(await app.call("GET /api/system/executions")).toMatchObject([{ status: "completed" }]);
    await expectCounters(app.db);
    expect(await (await app.server.fetch(new Request("http://localhost/metrics"))).text()).toContain(
      "svc_ready 1\n",
    );
    expect((await app.call("GET /api/system/doctor")).checks[0]).toMatchObject({
      name: "database",
      status: "ok",
    });
    // A libSQL server has its own backup; the service only says so.
    expect(await app.send("POST /api/system/backup", {})).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("Back it up there") },
    });
  });
});

describe.skipIf(SQLD === undefined)("two servers on one libSQL server (contract 4) [DSP-2]", () => {
  /** Makes the owner's last heartbeat a minute old. */
  async function ageHeartbeat({ sqld }: SqldSite): Promise<void> {
    await using db = await Database.open(sqld.url);
    const older = "json_set(value, '$.beat_at', json_extract(value, '$.beat_at') - 60000)";
    await db.write([{ sql: `update setting set value = ${older} where name = 'owner'`, args: [] }]);
  }

  it("the second is refused and names the owner, until the first is killed or stopped", async () => {
    await using machines = await Machines.open();
    const first = await machines.start("one");
    const dataDir = machines.dataDir("two");
    await Deno.mkdir(dataDir);
    const refused = await svc(["serve"], { dataDir, env: machines.env });
    expect([refused.code, refused.out]).toEqual([5, ""]);
    expect(refused.err).toMatch(
      new RegExp(
        `another server uses it \\(pid ${first.child.pid} on .+, last report \\d+ s ago\\)\\. Stop that server`,
      ),
    );
    await first.end("SIGKILL");
    // With the same data directory it need not wait for the heartbeat to expire.
    const again = await machines.start("one");
    expect(await again.end("SIGTERM")).toMatchObject({ code: 0 });
    const other = await machines.start("two");
    expect((await openClient(other.url)).token).toMatch(/^eyJ/);
    expect(await other.end("SIGTERM")).toMatchObject({ code: 0 });
  });

  it("a server that was silent until another took over its run writes nothing when it wakes [DSP-2]", async () => {
    await using machines = await Machines.open();
    const stalled = await machines.start("one");
    const api = await openClient(stalled.url);
    const worker = await api.call("POST /api/workers", { name: "Bob" });
    const chat = await api.call("POST /api/local/sessions", { worker_id: worker.id });
    await api.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "sleep 2" });
    const runs = (by: Client) => by.call(`GET /api/executions?worker_id=${worker.id}`);
    await waitUntil("the run has started", async () => (await runs(api))[0]?.status === "running");
    stalled.child.kill("SIGSTOP");
    await ageHeartbeat(machines.place);
    const heir = await machines.start("two");
    const other = await openClient(heir.url);
    await waitUntil("the second run ends", async () => (await runs(other))[0]?.status === "completed");
    const [latest] = await runs(other);
    const before = await other.call(`GET /api/executions/${latest.id}`);
    stalled.child.kill("SIGCONT");
    const words = /STOPPED WRITING.*another server has taken it over/;
    await waitUntil("the stalled server logs the takeover", () => words.test(stalled.stderr));
    // The server ends its runs and exits; a service manager starts it again (decision 0021).
    await api.send("POST /api/workers", { name: "Late" }).then(
      ({ status }) => expect(status).toBe(503),
      () => {},
    );
    expect(await stalled.child.status).toMatchObject({ code: 1 });
    expect(await runs(other)).toMatchObject([
      { attempt: 2, status: "completed", result: "slept 2" },
      { attempt: 1, status: "failed", failure: "server_lost" },
    ]);
    expect(await other.call(`GET /api/executions/${latest.id}`)).toEqual(before);
    expect(await other.text(`/api/executions/${latest.id}/logs`)).toContain("slept 2");
    const said = await other.call(`GET /api/local/sessions/${chat.id}/messages`);
    expect(said.map((one: { content: string }) => one.content)).toEqual(["sleep 2", "slept 2"]);
    expect((await other.call("GET /api/workers")).map((one: { name: string }) => one.name)).not.toContain(
      "Late",
    );
    expect(await heir.end("SIGTERM")).toMatchObject({ code: 0 });
  });

  it("an owner sends heartbeats", async () => {
    const clock = new TestClock("2026-01-05T08:00:00Z");
    await using app = await openApp({ clock, config: place.config });
    await ageHeartbeat(place);
    const silent = async () => (await findOwner(app.db))?.silent_ms ?? Infinity;
    expect(await silent()).toBeGreaterThan(59_000);
    clock.advance(10_000);
    await waitUntil("the owner has sent a heartbeat", async () => await silent() < 10_000);
  });
});
