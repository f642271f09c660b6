import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { findMarked } from "../../src/engine/process/isolation.ts";
import { Database } from "../../src/store/db/database.ts";
import { World } from "../harness/model/scenario.ts";
import type { Json } from "../harness/service/client.ts";
import { waitUntil } from "../harness/wait.ts";
import { createSchedule } from "../harness/model/workload.ts";

vi.setConfig({ testTimeout: 180_000 });

const ENV = {
  SVC_ENGINES__DEFAULT: "echo",
  SVC_LIMITS__STOP_GRACE: "100ms",
  SVC_LIMITS__MAX_ATTEMPTS: "2",
};
// Leaves a background process behind, and never ends.
const STUBBORN =
  'echo "$SVC_RUN_ID" >>asked; setsid sh -c \'trap "" INT TERM HUP; sleep 300\' & trap "" INT TERM; sleep 300';

async function readOccurrence({ database }: World): Promise<Json> {
  const db = await Database.open(`file:${database}`);
  const row = await db.first<Json>("select * from occurrence");
  const reserved = await db.read("select * from reservation");
  await db.close();
  return { ...row, reserved: reserved.length };
}

it("the processes of a gate end before its second attempt after a server kill, and the second loss is the last [CMD-1]", async () => {
  await using world = await World.serve({ env: ENV });
  const { api } = world;
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
    await world.server.end("SIGKILL");
    expect(await readOccurrence(world)).toMatchObject({
      status: "gating",
      run_id: before.at(-1),
      reserved: 1,
    });
    await world.start();
    await waitUntil("the lost gate is dealt with", async () => {
      const { status, run_id } = await readOccurrence(world);
      return status !== "gating" || run_id !== before.at(-1);
    });
    expect(await findMarked(new Set(before))).toEqual([]);
  }
  expect(await readOccurrence(world)).toMatchObject({ status: "failed", gate_exit: null, reserved: 0 });
  expect(await world.api.call(`GET /api/tasks/${task}`)).toMatchObject({
    status: "scheduled",
    paused: false,
    last_status: "failed",
    last_error: "server_lost: the service died while its gate ran",
    failures_in_row: 0,
    execution_id: null,
  });
  expect((await asked()).length).toBe(2);
  expect(await world.server.end("SIGTERM")).toMatchObject({ code: 0 });
});
