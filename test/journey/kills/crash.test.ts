import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findMarked } from "../../../src/engine/process/isolation.ts";
import { startConversation, World } from "../../harness/model/scenario.ts";
import { createTempDir, startServer, svc } from "../../harness/service/process.ts";
import { fetchStatus } from "../../harness/service/client.ts";
import { waitUntil } from "../../harness/wait.ts";

describe("kill -9 of the server during a run", () => {
  it("the message still gets its reply, no process of the old run is alive, and the lost attempt has server_lost", async () => {
    await using world = await World.open();
    const marker = world.path("second");
    // The first attempt hangs. The second finds the first one's file and answers.
    const script = world.path("agent.sh");
    await Deno.writeTextFile(
      script,
      `#!/bin/sh\nif [ -e ${marker} ]; then echo done; else touch ${marker}; sleep 300; fi\n`,
      { mode: 0o755 },
    );
    world.env.SVC_ENGINES__FAKE__COMMAND = script;
    const { server: first, say, sessionId } = await startConversation(world);
    await say("work");
    await waitUntil("the agent has started", () => Deno.stat(marker).then(() => true, () => false));
    const runId = await findRunId(world.path("."));
    expect(runId).not.toBe("");
    expect(await first.end("SIGKILL")).toMatchObject({ signal: "SIGKILL" });
    const { server: second, api: { call, stream } } = await world.start();
    expect(await findMarked(new Set([runId]))).toEqual([]);
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
  it("a second server does not start after the lock file was removed, nor with a separate data directory [DUR-5]", async () => {
    await using folder = await createTempDir();
    await using other = await createTempDir();
    const database = `file:${join(folder.path, "elsewhere/own.db")}`;
    for (const name of ["data", "elsewhere"]) await Deno.mkdir(join(folder.path, name));
    await using server = await startServer({
      dataDir: join(folder.path, "data"),
      env: { SVC_DATABASE__URL: database },
    });
    await Deno.remove(join(folder.path, "data/svc.lock"));
    const again = await svc(["serve"], { dataDir: join(folder.path, "data") });
    expect([again.code, again.err]).toEqual([5, expect.stringContaining("another server uses it")]);
    const beside = await svc(["serve"], { dataDir: other.path, env: { SVC_DATABASE__URL: database } });
    expect([beside.code, beside.err]).toEqual([5, expect.stringContaining(`pid ${server.child.pid}`)]);
    expect(await fetchStatus(`${server.url}/readyz`)).toBe(200);
  });
});

/** Returns the mark of the only process whose environment names something in `folder`. */
async function findRunId(folder: string): Promise<string> {
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const environment = await Deno.readTextFile(`/proc/${name}/environ`).catch(() => "");
    const mark = /(?:^|\0)SVC_RUN_ID=([^\0]*)/.exec(environment)?.[1];
    if (mark !== undefined && environment.includes(folder)) return mark;
  }
  return "";
}
