import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { FAKE_AGENT } from "../harness/agents.ts";
import { startServer, svc, tempDir } from "../harness/process.ts";
import { StreamClient } from "../harness/stream.ts";
import { patient } from "../harness/patience.ts";

const ENV = {
  SVC_ENGINES__DEFAULT: "fake",
  SVC_ENGINES__FAKE__KIND: "command",
  SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
};

/** A client of a server process, with a login of its own. */
async function client(url: string) {
  const login = await fetch(`${url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password: "pass" }),
  });
  const { access_token } = await login.json();
  const authorization = `Bearer ${access_token}`;
  const call = async (route: string, body?: unknown) => {
    const [method = "GET", path = ""] = route.split(" ");
    const response = await fetch(url + path, {
      method,
      headers: { authorization, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return await response.json();
  };
  const stream = (id: string, headers: Record<string, string> = {}) =>
    StreamClient.open(`${url}/api/local/sessions/${id}/stream`, { authorization, ...headers });
  return { call, stream };
}

describe("kill -9 of the server during a run", () => {
  it("the message still gets its reply, no process of the old run is alive, and the lost attempt says server_lost", async () => {
    await using folder = await tempDir();
    const marker = join(folder.path, "second");
    const env = { ...ENV, SVC_AUTH_PASSWORD: "pass" };
    // The first attempt hangs; the second finds the first one's file and answers.
    const script = join(folder.path, "agent.sh");
    await Deno.writeTextFile(
      script,
      `#!/bin/sh\nif [ -e ${marker} ]; then echo done; else touch ${marker}; sleep 300; fi\n`,
      { mode: 0o755 },
    );
    const withScript = { ...env, SVC_ENGINES__FAKE__COMMAND: script };
    const dataDir = join(folder.path, "data");
    await Deno.mkdir(dataDir);

    let sessionId = "";
    let runId = "";
    {
      await using first = await startServer({ dataDir, env: withScript });
      const { call, stream } = await client(first.url);
      const worker = await call("POST /api/workers", { name: "Ada" });
      ({ id: sessionId } = await call("POST /api/local/sessions", { worker_id: worker.id }));
      const events = await stream(sessionId);
      await call(`POST /api/local/sessions/${sessionId}/messages`, { content: "work" });
      await events.until((one) => one.named("status").some(({ data }) => data.state === "working"));
      while (!await Deno.stat(marker).then(() => true, () => false)) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      runId = await runIdOf(folder.path);
      expect(runId).not.toBe("");
      expect(await first.end("SIGKILL")).toMatchObject({ signal: "SIGKILL" });
    }
    await using second = await startServer({ dataDir, env: withScript });
    expect(await findMarked(new Set([runId]))).toEqual([]);
    const { call, stream } = await client(second.url);
    const events = await stream(sessionId, { "last-event-id": "0" });
    await events.until((one) => one.named("message").length === 1);
    expect(events.named("message")[0]?.data.content).toBe("done");
    expect(await call("GET /api/executions")).toMatchObject([
      { status: "completed", attempt: 2, result: "done" },
      { status: "failed", attempt: 1, failure: "server_lost" },
    ]);
    await events.close();
    expect(await second.end("SIGTERM")).toMatchObject({ code: 0 });
  });
});

describe("stopping in order", () => {
  it("idle: exit 0 within a second (reliability SHD-1)", async () => {
    await using folder = await tempDir();
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      await using server = await startServer({ dataDir: folder.path });
      const { code, ms } = await server.end(signal);
      expect(code).toBe(0);
      expect(ms).toBeLessThan(patient(1_000));
      await expect(Deno.stat(join(folder.path, "server.json"))).rejects.toThrow();
    }
  });

  it("runs that finish in time are finished, the others go back into the queue without using up an attempt (reliability SHD-2)", async () => {
    await using folder = await tempDir();
    const env = {
      ...ENV,
      SVC_AUTH_PASSWORD: "pass",
      SVC_SHUTDOWN_GRACE: "1500ms",
      SVC_LIMITS__MAX_CONCURRENT_RUNS: "8",
    };
    const sessions: string[] = [];
    {
      await using server = await startServer({ dataDir: folder.path, env });
      const { call, stream } = await client(server.url);
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
      expect(ms).toBeLessThan(patient(1_500 + 5_000));
    }
    await using server = await startServer({ dataDir: folder.path, env });
    const { call } = await client(server.url);
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

  it("a second signal ends the waiting (reliability SHD-3)", async () => {
    await using folder = await tempDir();
    const env = { ...ENV, SVC_AUTH_PASSWORD: "pass", SVC_SHUTDOWN_GRACE: "60s" };
    await using server = await startServer({ dataDir: folder.path, env });
    const { call, stream } = await client(server.url);
    const worker = await call("POST /api/workers", { name: "Ada" });
    const session = await call("POST /api/local/sessions", { worker_id: worker.id });
    const events = await stream(session.id);
    await call(`POST /api/local/sessions/${session.id}/messages`, { content: "sleep 60" });
    await events.until((one) => one.named("status").some(({ data }) => data.state === "working"));
    server.child.kill("SIGTERM");
    await until(async () => (await fetch(`${server.url}/readyz`).then(drained)).status === 503);
    expect((await call("GET /api/workers"))[0].status).toBe("working");
    const refused = await call(`POST /api/local/sessions/${session.id}/messages`, { content: "more" });
    expect(refused).toMatchObject({ code: "unavailable" });
    const { code, ms } = await server.end("SIGTERM");
    expect(code).toBe(0);
    expect(ms).toBeLessThan(patient(5_000));
    expect(events.named("end").map(({ data }) => data.reason)).toEqual(["shutdown"]);
  });

  it("a second server on the same data directory says who holds it and exits 5 (reliability DUR-5)", async () => {
    await using folder = await tempDir();
    await using server = await startServer({ dataDir: folder.path });
    const started = performance.now();
    const second = await svc(["serve"], { dataDir: folder.path });
    expect(second.code).toBe(5);
    expect(second.err).toContain(`pid ${server.child.pid}`);
    expect(performance.now() - started).toBeLessThan(patient(2_000));
    expect((await fetch(`${server.url}/readyz`).then(drained)).status).toBe(200);
    await server.end("SIGKILL");
    await using third = await startServer({ dataDir: folder.path });
    expect(third.url).not.toBe("");
  });

  it("a second server does not start after the lock file was removed, nor with a data directory of its own (reliability DUR-5)", async () => {
    await using folder = await tempDir();
    await using other = await tempDir();
    const database = `file:${join(folder.path, "elsewhere/own.db")}`;
    for (const name of ["data", "elsewhere"]) await Deno.mkdir(join(folder.path, name));
    await using server = await startServer({
      dataDir: join(folder.path, "data"),
      env: { SVC_DATABASE__URL: database },
    });
    await Deno.remove(join(folder.path, "data/svc.lock"));
    const again = await svc(["serve"], { dataDir: join(folder.path, "data") });
    expect([again.code, again.err]).toEqual([5, expect.stringContaining("another server is running on it")]);
    const beside = await svc(["serve"], { dataDir: other.path, env: { SVC_DATABASE__URL: database } });
    expect([beside.code, beside.err]).toEqual([5, expect.stringContaining(`pid ${server.child.pid}`)]);
    expect((await fetch(`${server.url}/readyz`).then(drained)).status).toBe(200);
  });
});

async function drained(response: Response): Promise<Response> {
  await response.body?.cancel();
  return response;
}

async function until(done: () => Promise<boolean>): Promise<void> {
  while (!await done()) await new Promise((resolve) => setTimeout(resolve, 20));
}

/** The mark of the one process whose environment names something in `folder`. */
async function runIdOf(folder: string): Promise<string> {
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const environment = await Deno.readTextFile(`/proc/${name}/environ`).catch(() => "");
    const mark = /(?:^|\0)SVC_RUN_ID=([^\0]*)/.exec(environment)?.[1];
    if (mark !== undefined && environment.includes(folder)) return mark;
  }
  return "";
}
