import { describe, expect, it } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { svc } from "../../harness/service/process.ts";
import { type Client, fetchStatus } from "../../harness/service/client.ts";
import type { StreamClient } from "../../harness/stream.ts";
import { waitUntil } from "../../harness/wait.ts";

/** Sends a new worker a message and waits until it works. */
async function startWork(
  { call, stream }: Client,
  content: string,
): Promise<{ session: string; events: StreamClient }> {
  const worker = await call("POST /api/workers", { name: "Ada" });
  const { id } = await call("POST /api/local/sessions", { worker_id: worker.id });
  const events = await stream(id);
  await call(`POST /api/local/sessions/${id}/messages`, { content });
  await events.until((one) => one.named("status").some(({ data }) => data.state === "working"));
  return { session: id, events };
}

describe("stopping in order", () => {
  it("runs that finish in time are stored, the others return to the queue without using up an attempt [SHD-2]", async () => {
    await using world = await World.serve({
      env: { SVC_SHUTDOWN_GRACE: "1500ms", SVC_LIMITS__MAX_CONCURRENT_RUNS: "8" },
    });
    const sessions: string[] = [];
    for (const work of ["sleep 1", "sleep 30", "sleep 1", "sleep 30"]) {
      sessions.push((await startWork(world.api, work)).session);
    }
    const { code, ms } = await world.server.end("SIGTERM");
    expect(code).toBe(0);
    expect(ms).toBeLessThan(1_500 + 5_000);
    const { server, api: { call } } = await world.start();
    const executions: { instruction: string; status: string; failure: string }[] = await call(
      "GET /api/executions",
    );
    expect(executions.filter((one) => one.instruction === "sleep 1").map((one) => one.status)).toEqual([
      "completed",
      "completed",
    ]);
    const stopped = executions.filter((one) => one.failure === "server_lost");
    expect(stopped).toHaveLength(2);
    const tasks = await Promise.all(sessions.map((id) => call(`GET /api/tasks?session_key=local:${id}`)));
    for (const [task] of tasks) expect(task.attempt).toBe(1);
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  });

  it("a second signal ends the wait [SHD-3]", async () => {
    await using world = await World.serve({ env: { SVC_SHUTDOWN_GRACE: "60s" } });
    const { server, api: { call, send } } = world;
    const { session, events } = await startWork(world.api, "sleep 60");
    server.child.kill("SIGTERM");
    await waitUntil("the server is stopping", async () => await fetchStatus(`${server.url}/readyz`) === 503);
    expect((await call("GET /api/workers"))[0].status).toBe("working");
    const { body: refused } = await send(`POST /api/local/sessions/${session}/messages`, { content: "more" });
    expect(refused).toMatchObject({ code: "unavailable" });
    const { code, ms } = await server.end("SIGTERM");
    expect(code).toBe(0);
    expect(ms).toBeLessThan(5_000);
    expect(events.named("end").map(({ data }) => data.reason)).toEqual(["shutdown"]);
  });

  it("a second server on the same data directory names the owner and exits 5 [DUR-5]", async () => {
    await using world = await World.serve();
    const { server, dataDir } = world;
    const started = performance.now();
    const second = await svc(["serve"], { dataDir });
    expect(second.code).toBe(5);
    expect(second.err).toContain(`pid ${server.child.pid}`);
    // Most of this time is the start of the program from source.
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(await fetchStatus(`${server.url}/readyz`)).toBe(200);
    await server.end("SIGKILL");
    expect((await world.start()).server.url).not.toBe("");
  });
});
