import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { fetchStatus, waitUntilQuiet } from "../../harness/service/client.ts";
import { canMountDisk, SmallDisk } from "../../harness/service/disk.ts";
import { checkAtRest } from "../../torture/checker.ts";
import { openConversation } from "../../harness/model/workload.ts";

vi.setConfig({ testTimeout: 180_000 });

const MOUNTS = await canMountDisk();

describe.skipIf(!MOUNTS)("a full disk", () => {
  it("of the database: writes get an error code, reads continue, no acknowledged data is lost, and the service recovers automatically [DBF-1]", async () => {
    await using world = await World.open();
    const { dataDir } = world;
    const disk = world.use(await SmallDisk.mount(world.path("small"), 8));
    world.env.SVC_DATABASE__URL = `file:${disk.path}/svc.db`;
    const { server, api } = await world.start();
    const { say, acknowledged } = await openConversation(api);
    for (let i = 0; i < 5; i++) expect((await say(`say before ${i}`)).status).toBe(202);
    await disk.fill();
    const refused: number[] = [];
    for (let i = 0; i < 60 && refused.length < 10; i++) {
      const { status, body } = await say(`say full ${i} # ${"x".repeat(100_000)}`);
      if (status === 202) continue;
      expect([status, body.code]).toEqual([507, "storage_full"]);
      expect(body.detail).toMatch(/disk of the database is full/);
      refused.push(status);
    }
    expect(refused).toHaveLength(10);
    expect(await api.call("GET /api/workers")).toHaveLength(1);
    expect(await fetchStatus(`${server.url}/livez`)).toBe(200);
    await disk.free();
    const started = performance.now();
    while ((await say("say after")).status !== 202) {
      expect(performance.now() - started).toBeLessThan(5_000);
    }
    await waitUntilQuiet(api);
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
    await Deno.copyFile(join(disk.path, "svc.db"), join(dataDir, "svc.db"));
    expect(await checkAtRest({ dataDir, messages: acknowledged, maxAttempts: 3 })).toEqual([]);
  });
});
