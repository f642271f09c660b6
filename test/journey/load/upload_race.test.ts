import { statfsSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { canMountDisk, SmallDisk } from "../../harness/service/disk.ts";

vi.setConfig({ testTimeout: 180_000 });

const DISK_MB = 64;
const FILE_BYTES = 20_000_000;
const UPLOADS = 6;
const FLOOR_BYTES = DISK_MB * 1024 * 1024 * 0.05;
const MOUNTS = await canMountDisk();

it.skipIf(!MOUNTS).each(["said", "not said"])(
  "six concurrent uploads with size %s never fill a disk: those that fit are kept, the others get 507 [UPL-2]",
  async (size) => {
    await using world = await World.open();
    const disk = world.use(await SmallDisk.mount(join(world.dataDir, "uploads"), DISK_MB));
    const { server, api } = await world.start();
    const { id } = await api.call("POST /api/local/sessions");
    const freeBytes = () => {
      const { bavail, bsize } = statfsSync(disk.path);
      return bavail * bsize;
    };
    let least = Infinity;
    const watch = setInterval(() => least = Math.min(least, freeBytes()), 1);
    const upload = async () => {
      const form = new FormData();
      form.append("file", new Blob([new Uint8Array(FILE_BYTES)]), "large.bin");
      const whole = new Request("http://localhost", { method: "POST", body: form });
      const body = size === "said" ? new Uint8Array(await whole.arrayBuffer()) : whole.body;
      const headers = {
        authorization: `Bearer ${api.token}`,
        "content-type": whole.headers.get("content-type") ?? "",
      };
      const response = await fetch(`${server.url}/api/local/sessions/${id}/media`, {
        method: "POST",
        headers,
        body,
      });
      await response.body?.cancel();
      return response.status;
    };
    const statuses = await Promise.all(Array.from({ length: UPLOADS }, upload));
    clearInterval(watch);
    const kept = statuses.filter((status) => status === 200).length;
    expect(statuses.filter((status) => status === 507)).toHaveLength(UPLOADS - kept);
    // Uploads with a known size reserve space before the first byte; the others may stop each other.
    if (size === "said") expect(kept).toBe(3);
    expect(Math.min(least, freeBytes())).toBeGreaterThanOrEqual(FLOOR_BYTES - 1024 * 1024);
    // A refused upload frees its space.
    const left = [...Deno.readDirSync(join(disk.path, id))];
    expect(left).toHaveLength(kept);
    if (kept === 0) expect(await upload()).toBe(200);
  },
);
