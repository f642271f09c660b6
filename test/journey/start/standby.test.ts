import { describe, expect, it, vi } from "vitest";
import { openClient } from "../../harness/service/client.ts";
import { SQLD } from "../../harness/fakes/sqld.ts";
import { Machines, readState } from "../../harness/fakes/standby.ts";
import { waitUntil } from "../../harness/wait.ts";

vi.setConfig({ testTimeout: 180_000 });

const TAKEOVER_MAX_MS = 45_000;
const HANDOVER_MAX_MS = 3_000;

async function waitForState(url: string, state: string, ms: number): Promise<number> {
  const began = performance.now();
  await waitUntil(`${url} is ${state}`, async () => await readState(url) === state, ms);
  return performance.now() - began;
}

describe.skipIf(SQLD === undefined)("a standby on a real libSQL server (contract 18)", () => {
  it("reports that it waits, and takes over within 3 s when the other one stops", async () => {
    await using machines = await Machines.open();
    const { first, second, api } = await machines.startPair();
    expect(await readState(second.url)).toBe("standby");
    expect((await fetch(`${second.url}/livez`)).status).toBe(200);
    const refused = await fetch(`${second.url}/api/workers`);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "2"]);
    expect(await refused.json()).toMatchObject({
      code: "unavailable",
      detail: expect.stringContaining("this service is a standby"),
    });
    await api.call("POST /api/workers", { name: "Ada" });

    expect(await first.end("SIGTERM")).toMatchObject({ code: 0 });
    expect(await waitForState(second.url, "ready", HANDOVER_MAX_MS)).toBeLessThan(HANDOVER_MAX_MS);
    const other = await openClient(second.url);
    expect(await other.call("GET /api/workers")).toMatchObject([{ name: "Ada" }]);
    expect(await second.end("SIGTERM")).toMatchObject({ code: 0 });
  });

  it("takes over within 45 s when the other one was killed, and repeats its work [RUN-4]", async () => {
    await using machines = await Machines.open();
    const { first, second, api } = await machines.startPair();
    const worker = await api.call("POST /api/workers", { name: "Bob" });
    const chat = await api.call("POST /api/local/sessions", { worker_id: worker.id });
    await api.call(`POST /api/local/sessions/${chat.id}/messages`, { content: "sleep 3" });
    const path = `GET /api/executions?worker_id=${worker.id}`;
    await waitUntil("the run has started", async () => (await api.call(path))[0]?.status === "running");
    await first.end("SIGKILL");
    expect(await waitForState(second.url, "ready", TAKEOVER_MAX_MS)).toBeLessThan(TAKEOVER_MAX_MS);
    const other = await openClient(second.url);
    await waitUntil("the second run ends", async () => (await other.call(path))[0]?.status === "completed");
    expect(await other.call(path)).toMatchObject([
      { attempt: 2, status: "completed", result: "slept 3" },
      { attempt: 1, status: "failed", failure: "server_lost" },
    ]);
    // The killed server starts again and waits.
    const back = await machines.start("one", { standby: true });
    expect(await readState(back.url)).toBe("standby");
    expect(await back.end("SIGTERM")).toMatchObject({ code: 0 });
    expect(await second.end("SIGTERM")).toMatchObject({ code: 0 });
  });
});
