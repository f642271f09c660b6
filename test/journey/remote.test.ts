import { describe, expect, it } from "vitest";
import { fakeEnvironment } from "../harness/agents.ts";
import { openApp } from "../harness/app.ts";
import { type Client, client } from "../harness/client.ts";
import { expectCounters } from "../harness/counters.ts";
import { startServer, tempDir } from "../harness/process.ts";
import { eventually } from "../harness/wait.ts";

const REMOTE_URL = Deno.env.get("SVC_TEST_LIBSQL_URL");

describe.skipIf(REMOTE_URL === undefined)("the whole service on a real libSQL server", () => {
  it("takes a message to its reply, and finds everything again after a restart", async () => {
    const config = { database: { url: REMOTE_URL ?? "" } };
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
    // It has a backup of its own, and saying so is all that we do.
    expect(await app.send("POST /api/system/backup", {})).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining("its own backup") },
    });
  });
});

it.skipIf(REMOTE_URL === undefined)(
  "a server that was stopped while another took its run over writes nothing when it wakes (promises DSP-2)",
  async () => {
    await using one = await tempDir();
    await using two = await tempDir();
    const env = { ...fakeEnvironment(), SVC_DATABASE__URL: REMOTE_URL ?? "" };
    await using stalled = await startServer({ dataDir: one.path, env });
    const api = await client(stalled.url);
    const worker = await api.call("POST /api/workers", { name: "Bob" });
    const chat = await api.call("POST /api/local/sessions", { worker_id: worker.id });
    await api.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "sleep 2" });
    const runs = (by: Client) => by.call(`GET /api/executions?worker_id=${worker.id}`);
    await eventually("it is running", async () => (await runs(api))[0]?.status === "running");
    stalled.child.kill("SIGSTOP");
    await using heir = await startServer({ dataDir: two.path, env });
    const other = await client(heir.url);
    await eventually(
      "the heir has done it again",
      async () => (await runs(other))[0]?.status === "completed",
    );
    const [latest] = await runs(other);
    const before = await other.call(`GET /api/executions/${latest.id}`);
    stalled.child.kill("SIGCONT");
    await eventually(
      "it says that it came too late",
      () => Promise.resolve(/had an outcome already/.test(stalled.stderr)),
    );
    expect(await runs(other)).toMatchObject([
      { attempt: 2, status: "completed", result: "slept 2" },
      { attempt: 1, status: "failed", failure: "server_lost" },
    ]);
    expect(await other.call(`GET /api/executions/${latest.id}`)).toEqual(before);
    expect(await other.text(`/api/executions/${latest.id}/logs`)).toContain("slept 2");
    const said = await other.call(`GET /api/local/sessions/${chat.id}/messages`);
    expect(said.map((one: { content: string }) => one.content)).toEqual(["sleep 2", "slept 2"]);
  },
  60_000,
);
