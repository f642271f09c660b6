import { statfsSync } from "node:fs";
import { expect, it } from "vitest";
import { DiskRoom } from "../../src/files/disk_space.ts";
import { tempDir } from "../harness/service/process.ts";

const FULL = expect.objectContaining({ code: "storage_full" });

it("DiskRoom adds the reservations of all uploads until they are written or released [UPL-2]", async () => {
  await using folder = await tempDir();
  const { bavail, bsize } = statfsSync(folder.path);
  // Other processes use this disk, so both sizes are far from its limit.
  const most = Math.floor(bavail * bsize * 0.6);
  const rest = Math.floor(bavail * bsize * 0.2);
  const first = new DiskRoom(folder.path, most);
  expect(() => new DiskRoom(folder.path, most)).toThrow(FULL);
  const second = new DiskRoom(folder.path, rest);

  // A reservation counts once; only more than that needs space.
  first.need(most);
  first.need(most + 1);
  expect(() => first.need(2 * most)).toThrow(FULL);
  expect(() => second.need(most)).toThrow(FULL);

  // The disk itself counts written bytes.
  first.written(most);
  const third = new DiskRoom(folder.path, rest);
  expect(() => new DiskRoom(folder.path, most)).toThrow(FULL);
  second.release();
  second.release();
  third.release();
  first.release();
  const again = new DiskRoom(folder.path, most);
  expect(() => new DiskRoom(folder.path, most)).toThrow(FULL);
  again.release();
});

it("DiskRoom keeps a reserve of the disk, and allows writes where the free space is unknown [UPL-2]", async () => {
  await using folder = await tempDir();
  const { bavail, bsize, blocks } = statfsSync(folder.path);
  const floor = Math.min(100_000_000, blocks * bsize * 0.05);
  expect(() => new DiskRoom(folder.path, bavail * bsize - floor / 2)).toThrow(FULL);
  new DiskRoom(`${folder.path}/none`, 1e18).release();
});

it("DiskRoom treats a size that is not a number as unknown, and keeps counting [UPL-2]", async () => {
  await using folder = await tempDir();
  const sizes: unknown[] = ["5000000", {}, NaN, Infinity, -5];
  const rooms = sizes.map((size) => new DiskRoom(folder.path, size as number));
  for (const room of rooms) room.release();
  const { bavail, bsize } = statfsSync(folder.path);
  expect(() => new DiskRoom(folder.path, 2 * bavail * bsize)).toThrow(FULL);
  new DiskRoom(folder.path, Math.floor(bavail * bsize * 0.6)).release();
});
