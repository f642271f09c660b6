import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntilQuiet } from "../../harness/service/client.ts";
import { waitUntil } from "../../harness/wait.ts";
import { canMountDisk, SmallDisk } from "../../harness/service/disk.ts";
import { svc } from "../../harness/service/process.ts";
import { checkAtRest } from "../../torture/checker.ts";
import { openConversation } from "../../harness/model/workload.ts";

const MOUNTS = await canMountDisk();

describe.skipIf(!MOUNTS)("a full disk", () => {
  it("with the logs: the run and its reply are complete, its log ends early, and nothing else is affected [DBF-2]", async () => {
    await using world = await World.open();
    const { dataDir } = world;
    const disk = world.use(await SmallDisk.mount(join(dataDir, "logs"), 1));
    const { server, api } = await world.start();
    const { say, acknowledged } = await openConversation(api);
    await disk.fill();
    expect((await say("flood 3000000")).status).toBe(202);
    await waitUntilQuiet(api);
    expect((await say("say all is well")).status).toBe(202);
    await waitUntilQuiet(api);
    const [second, first] = await api.call("GET /api/executions");
    expect(first).toMatchObject({ status: "completed", failure: "" });
    expect(second).toMatchObject({ status: "completed", result: "all is well" });
    expect((await api.text(`/api/executions/${first.id}/logs`)).length).toBeLessThan(1_000_000);
    expect(server.stderr).toContain("Cannot write the log");
    await disk.free();
    expect((await say("say and again")).status).toBe(202);
    await waitUntilQuiet(api);
    const readThirdLog = async () => {
      const [third] = await api.call("GET /api/executions");
      return await api.text(`/api/executions/${third.id}/logs`);
    };
    await waitUntil("the third run has a log", async () => (await readThirdLog()).includes("and again"));
    await server.end("SIGTERM");
    expect(await checkAtRest({ dataDir, messages: acknowledged, maxAttempts: 3 })).toEqual([]);
  });

  it("of the uploads: 507, and no part of the file is left [DBF-2]", async () => {
    await using world = await World.open();
    const { dataDir } = world;
    const disk = world.use(await SmallDisk.mount(join(dataDir, "uploads"), 2));
    const { server, api } = await world.start();
    const { sessionId: session } = await openConversation(api);
    const send = (bytes: number) => {
      const form = new FormData();
      form.append("file", new Blob([new Uint8Array(bytes)]), "big.bin");
      return api.upload(`/api/local/sessions/${session}/media`, form);
    };
    expect((await send(1_000_000)).size).toBe(1_000_000);
    expect(await send(1_500_000)).toMatchObject({ status: 507, code: "storage_full" });
    expect((await send(500_000)).size).toBe(500_000);
    expect([...Deno.readDirSync(join(disk.path, session))]).toHaveLength(2);
    await server.end("SIGTERM");
    expect(await checkAtRest({ dataDir, maxAttempts: 3 })).toEqual([]);
  });

  it("of the backup's target, or of the copy: no file under its name, and the older backup is unchanged [BAK-3]", async () => {
    await using world = await World.open();
    const { dataDir } = world;
    const target = world.use(await SmallDisk.mount(world.path("target"), 2));
    const data = world.use(await SmallDisk.mount(dataDir, 24));
    const { server, api } = await world.start();
    const { sessionId: session } = await openConversation(api);
    const file = join(target.path, "b.tar");
    expect((await svc(["ctl", "system", "backup", file], { dataDir })).code).toBe(0);
    const before = await Deno.readFile(file);
    const form = new FormData();
    form.append("file", new Blob([new Uint8Array(2_000_000)]), "big.bin");
    await api.upload(`/api/local/sessions/${session}/media`, form);
    const full = await svc(["ctl", "system", "backup", "--force", file], { dataDir });
    expect(full).toMatchObject({ code: 6, err: expect.stringContaining("the disk is full") });
    expect(await Deno.readFile(file)).toEqual(before);
    expect([...Deno.readDirSync(target.path)].map((entry) => entry.name)).toEqual(["b.tar"]);
    await data.fill();
    const other = world.path("c.tar");
    const noCopy = await svc(["ctl", "system", "backup", other], { dataDir });
    expect(noCopy).toMatchObject({ code: 6, out: "", err: expect.stringContaining("full") });
    await expect(Deno.stat(other)).rejects.toThrow();
    await expect(Deno.stat(join(dataDir, "backup.part"))).rejects.toThrow();
    await data.free();
    expect((await svc(["ctl", "system", "backup", other], { dataDir })).code).toBe(0);
    await server.end("SIGTERM");
  });
});
