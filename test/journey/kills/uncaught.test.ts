import { describe, expect, it } from "vitest";
import { findMarked } from "../../../src/engine/process/isolation.ts";
import { Server } from "../../../src/boot/server.ts";
import { buildTestConfig, openApp } from "../../harness/service/app.ts";
import { World } from "../../harness/model/scenario.ts";
import { createTempDir, SVC } from "../../harness/service/process.ts";
import { waitUntil } from "../../harness/wait.ts";
import { readRows } from "../../harness/model/workload.ts";
import { createTask } from "../../harness/service/runner.ts";

// The long run: SVC_TEST_THROWS=reject,throw,text.
const THROWS = (Deno.env.get("SVC_TEST_THROWS") ?? "reject").split(",");
const UNCAUGHT = new URL("../../harness/service/uncaught.ts", import.meta.url).pathname;

it("stopping twice, and with a second signal, causes no error [SHD-6]", async () => {
  const uncaught: unknown[] = [];
  const note = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    uncaught.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", note);
  const app = await openApp();
  const response = await fetch(`${app.url}/livez`);
  await response.text();
  await app.server.stop();
  app.server.hurry();
  await app.server.stop();
  await expect(fetch(`${app.url || "http://127.0.0.1:1"}/livez`)).rejects.toThrow();
  await new Promise((resolve) => setTimeout(resolve, 20));
  globalThis.removeEventListener("unhandledrejection", note);
  expect(uncaught).toEqual([]);
  await app[Symbol.asyncDispose]();
});

it("a stop in the middle of a start wins, and neither causes an error [SHD-6]", async () => {
  await using folder = await createTempDir();
  const server = await Server.open(buildTestConfig(folder.path));
  const starting = server.start();
  await server.stop();
  await starting;
  expect(server.parts.lifecycle.state).toBe("stopping");
  expect(server.stages.map(({ rounds }) => rounds)).toEqual(server.stages.map(() => 0));
});

describe("an uncaught error [SHD-8]", () => {
  it.each(THROWS)(
    "is logged with its cause and without secrets, runs return to the queue, and the exit code is 1: %s [SHD-8]",
    async (how) => {
      await using folder = await createTempDir();
      const file = `${folder.path}/now`;
      await using world = await World.serve({
        env: { SVC_LIMITS__STOP_GRACE: "100ms" },
        program: [SVC[0] ?? "", "run", "-A", UNCAUGHT, file, how],
      });
      const { server, api } = world;
      const worker = await api.call("POST /api/workers", { name: "Ada" });
      const task = await createTask(api, worker.id, "ignore-term");
      await waitUntil(
        "the run has started",
        async () => (await api.call("GET /api/executions?status=running")).length === 1,
      );
      await Deno.writeTextFile(file, "");
      const { code } = await server.ended;
      expect(code).toBe(1);
      const line =
        server.stderr.split("\n").find((one) => one.includes("Stopping after an uncaught error")) ?? "";
      expect(JSON.parse(line)).toMatchObject({ level: "error", area: "server" });
      expect(line).toMatch(how === "text" ? /only words/ : /broken at .*uncaught\.ts/);
      if (how !== "text") expect(line).toContain("the cause");
      expect(server.stderr).not.toContain("eyJ");
      const [row] = await readRows<{ status: string; attempt: number; run_id: string }>(
        world.dataDir,
        "select task.status, task.attempt, run_id from task join execution on execution.task_id = task.id where task.id = ?",
        [task],
      );
      expect(row).toMatchObject({ status: "pending", attempt: 0 });
      expect(await findMarked(new Set([row?.run_id ?? ""]))).toEqual([]);
    },
  );

  it("of the database in every loop delays the loops, and then all loops continue", async () => {
    await using app = await openApp();
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    const { db } = app;
    const broken = () => Promise.reject(new Error("injected"));
    const real = { read: db.read.bind(db), write: db.write.bind(db) };
    const rounds = app.server.stages.map((stage) => stage.rounds);
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: "hello" });
    Object.assign(db, { read: broken, write: broken });
    await waitUntil("every loop has met the error", () => {
      for (const stage of app.server.stages) stage.wake();
      return app.server.stages.every((stage, index) => stage.rounds > (rounds[index] ?? 0) + 1);
    });
    Object.assign(db, real);
    await app.settle();
    expect((await app.send("GET /readyz")).status).toBe(200);
    const said = await app.call(`GET /api/local/sessions/${id}/messages`);
    expect(said.map((one: { content: string }) => one.content)).toEqual(["hello", "hello"]);
  });
});
