import { describe, expect, it } from "vitest";
import { openApp } from "../harness/app.ts";
import { expectCounters } from "../harness/counters.ts";

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
