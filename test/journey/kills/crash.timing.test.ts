import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { FAKE_AGENT } from "../../harness/fakes/agents.ts";
import { createTempDir, startServer, svc } from "../../harness/service/process.ts";
import { fetchStatus, openClient, PASS_HASH } from "../../harness/service/client.ts";
import { waitUntil } from "../../harness/wait.ts";

const ENV = {
  SVC_ENGINES__DEFAULT: "fake",
  SVC_ENGINES__FAKE__KIND: "command",
  SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
};

describe("stopping in order", () => {
  it("idle: exit 0 within a second [SHD-1]", async () => {
    await using folder = await createTempDir();
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      await using server = await startServer({ dataDir: folder.path });
      const { code, ms } = await server.end(signal);
      expect(code).toBe(0);
      expect(ms).toBeLessThan(1_000);
      await expect(Deno.stat(join(folder.path, "server.json"))).rejects.toThrow();
    }
  });

  it("runs that finish in time are stored, the others return to the queue without using up an attempt [SHD-2]", async () => {
    await using folder = await createTempDir();
    const env = {
      ...ENV,
      SVC_AUTH__PASSWORD_HASH: PASS_HASH,
      SVC_SHUTDOWN_GRACE: "1500ms",
      SVC_LIMITS__MAX_CONCURRENT_RUNS: "8",
    };
    const sessions: string[] = [];
    {
      await using server = await startServer({ dataDir: folder.path, env });
      const { call, stream } = await openClient(server.url);
      for (let i = 0; i < 4; i++) {
        const worker = await call("POST /api/workers", { name: `w${i}` });
        const session = await call("POST /api/local/sessions", { worker_id: worker.id });
        sessions.push(session.id);
        const events = await stream(session.id);
        await call(`POST /api/local/sessions/${session.id}/messages`, {
          content: i % 2 === 0 ? "sleep 1" : "sleep 30",
        });
        await events.until((one) => one.named("status").some(({ data }) => data.state === "working"));
      }
      const { code, ms } = await server.end("SIGTERM");
      expect(code).toBe(0);
      expect(ms).toBeLessThan(1_500 + 5_000);
    }
    await using server = await startServer({ dataDir: folder.path, env });
    const { call } = await openClient(server.url);
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
    await using folder = await createTempDir();
    const env = { ...ENV, SVC_AUTH__PASSWORD_HASH: PASS_HASH, SVC_SHUTDOWN_GRACE: "60s" };
    await using server = await startServer({ dataDir: folder.path, env });
    const { call, send, stream } = await openClient(server.url);
    const worker = await call("POST /api/workers", { name: "Ada" });
    const session = await call("POST /api/local/sessions", { worker_id: worker.id });
    const events = await stream(session.id);
    await call(`POST /api/local/sessions/${session.id}/messages`, { content: "sleep 60" });
    await events.until((one) => one.named("status").some(({ data }) => data.state === "working"));
    server.child.kill("SIGTERM");
    await waitUntil(
      "the next state",
      async () => await fetchStatus(`${server.url}/readyz`) === 503,
    );
    expect((await call("GET /api/workers"))[0].status).toBe("working");
    const { body: refused } = await send(`POST /api/local/sessions/${session.id}/messages`, {
      content: "more",
    });
    expect(refused).toMatchObject({ code: "unavailable" });
    const { code, ms } = await server.end("SIGTERM");
    expect(code).toBe(0);
    expect(ms).toBeLessThan(5_000);
    expect(events.named("end").map(({ data }) => data.reason)).toEqual(["shutdown"]);
  });

  it("a second server on the same data directory names the owner and exits 5 [DUR-5]", async () => {
    await using folder = await createTempDir();
    await using server = await startServer({ dataDir: folder.path });
    const started = performance.now();
    const second = await svc(["serve"], { dataDir: folder.path });
    expect(second.code).toBe(5);
    expect(second.err).toContain(`pid ${server.child.pid}`);
    // Most of this time is the start of the program from source.
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(await fetchStatus(`${server.url}/readyz`)).toBe(200);
    await server.end("SIGKILL");
    await using third = await startServer({ dataDir: folder.path });
    expect(third.url).not.toBe("");
  });
});
