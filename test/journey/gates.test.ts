import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { Database } from "../../src/store/db/database.ts";
import { type Json, openClient, PASS_HASH } from "../harness/service/client.ts";
import { createTempDir, startServer } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { createSchedule } from "../harness/model/workload.ts";

vi.setConfig({ testTimeout: 180_000 });

const ENV = {
  SVC_AUTH__PASSWORD_HASH: PASS_HASH,
  SVC_ENGINES__DEFAULT: "echo",
  SVC_LIMITS__STOP_GRACE: "100ms",
  SVC_LIMITS__MAX_ATTEMPTS: "2",
};
// Leaves a background process behind, and never ends.
const STUBBORN =
  'echo "$SVC_RUN_ID" >>asked; setsid sh -c \'trap "" INT TERM HUP; sleep 300\' & trap "" INT TERM; sleep 300';

async function readOccurrence(dataDir: string): Promise<Json> {
  const db = await Database.open(`file:${join(dataDir, "svc.db")}`);
  const row = await db.first<Json>("select * from occurrence");
  const reserved = await db.read("select * from reservation");
  await db.close();
  return { ...row, reserved: reserved.length };
}

it("the processes of a gate end before its second attempt after a server kill, and the second loss is the last [CMD-1]", async () => {
  await using folder = await createTempDir();
  const dataDir = join(folder.path, "data");
  await Deno.mkdir(dataDir);
  let server = await startServer({ dataDir, env: ENV });
  let api = await openClient(server.url);
  const worker = await api.call("POST /api/workers", { name: "Ada" });
  const task = await createSchedule(api, worker.id, "hi", {
    gate: { command: ["sh", "-c", STUBBORN] },
    pause_after_failures: 1,
  });
  await api.call(`POST /api/tasks/${task}/run`, {});
  const asked = async () => {
    const text = await Deno.readTextFile(join(worker.work_dir, "asked")).catch(() => "");
    return text.split("\n").filter(Boolean);
  };
  for (let kill = 1; kill <= 2; kill++) {
    await waitUntil("its gate is asked", async () => (await asked()).length === kill, 40_000);
    const before = await asked();
    await server.end("SIGKILL");
    expect(await readOccurrence(dataDir)).toMatchObject({
      status: "gating",
      run_id: before.at(-1),
      reserved: 1,
    });
    server = await startServer({ dataDir, env: ENV });
    api = await openClient(server.url);
    await waitUntil("the lost gate is dealt with", async () => {
      const { status, run_id } = await readOccurrence(dataDir);
      return status !== "gating" || run_id !== before.at(-1);
    });
    expect(await findMarked(new Set(before))).toEqual([]);
  }
  expect(await readOccurrence(dataDir)).toMatchObject({ status: "failed", gate_exit: null, reserved: 0 });
  expect(await api.call(`GET /api/tasks/${task}`)).toMatchObject({
    status: "scheduled",
    paused: false,
    last_status: "failed",
    last_error: "server_lost: the service died while its gate ran",
    failures_in_row: 0,
    execution_id: null,
  });
  expect((await asked()).length).toBe(2);
  expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
});
