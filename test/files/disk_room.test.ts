import { statfsSync } from "node:fs";
import { expect, it } from "vitest";
import { DiskRoom } from "../../src/files/disk_space.ts";
import { tempDir } from "../harness/service/process.ts";

const FULL = expect.objectContaining({ code: "storage_full" });

it("DiskRoom counts what all uploads have reserved together, until it is written or given back [UPL-2]", async () => {
  await using folder = await tempDir();
  const { bavail, bsize } = statfsSync(folder.path);
  // Others use this disk as well: far enough from its end on both sides.
  const most = Math.floor(bavail * bsize * 0.6);
  const rest = Math.floor(bavail * bsize * 0.2);
  const first = new DiskRoom(folder.path, most);
  expect(() => new DiskRoom(folder.path, most)).toThrow(FULL);
  const second = new DiskRoom(folder.path, rest);

  // What was reserved is not counted again; more than that is.
  first.need(most);
  first.need(most + 1);
  expect(() => first.need(2 * most)).toThrow(FULL);
  expect(() => second.need(most)).toThrow(FULL);

  // What is written is the disk's to count.
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

it("DiskRoom leaves the last of the disk alone, and writes where nobody knows how much there is [UPL-2]", async () => {
  await using folder = await tempDir();
  const { bavail, bsize, blocks } = statfsSync(folder.path);
  const floor = Math.min(100_000_000, blocks * bsize * 0.05);
  expect(() => new DiskRoom(folder.path, bavail * bsize - floor / 2)).toThrow(FULL);
  new DiskRoom(`${folder.path}/none`, 1e18).release();
});

it("DiskRoom takes a size that is no number for an unknown one, and goes on counting [UPL-2]", async () => {
  await using folder = await tempDir();
  const sizes: unknown[] = ["5000000", {}, NaN, Infinity, -5];
  const rooms = sizes.map((size) => new DiskRoom(folder.path, size as number));
  for (const room of rooms) room.release();
  const { bavail, bsize } = statfsSync(folder.path);
  expect(() => new DiskRoom(folder.path, 2 * bavail * bsize)).toThrow(FULL);
  new DiskRoom(folder.path, Math.floor(bavail * bsize * 0.6)).release();
});
