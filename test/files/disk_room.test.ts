import { statfsSync } from "node:fs";
import { expect, it } from "vitest";
import { DiskReservation } from "../../src/files/disk_space.ts";
import { createTempDir } from "../harness/service/process.ts";

const FULL = expect.objectContaining({ code: "storage_full" });

it("DiskRoom adds the reservations of all uploads until they are written or released [UPL-2]", async () => {
  await using folder = await createTempDir();
  const { bavail, bsize } = statfsSync(folder.path);
  // Other processes use this disk, so both sizes are far from its limit.
  const most = Math.floor(bavail * bsize * 0.6);
  const rest = Math.floor(bavail * bsize * 0.2);
  const first = new DiskReservation(folder.path, most);
  expect(() => new DiskReservation(folder.path, most)).toThrow(FULL);
  const second = new DiskReservation(folder.path, rest);

  // A reservation counts once; only more than that needs space.
  first.reserve(most);
  first.reserve(most + 1);
  expect(() => first.reserve(2 * most)).toThrow(FULL);
  expect(() => second.reserve(most)).toThrow(FULL);

  // The disk itself counts written bytes.
  first.releaseWritten(most);
  const third = new DiskReservation(folder.path, rest);
  expect(() => new DiskReservation(folder.path, most)).toThrow(FULL);
  second.release();
  second.release();
  third.release();
  first.release();
  const again = new DiskReservation(folder.path, most);
  expect(() => new DiskReservation(folder.path, most)).toThrow(FULL);
  again.release();
});

it("DiskRoom keeps a reserve of the disk, and allows writes where the free space is unknown [UPL-2]", async () => {
  await using folder = await createTempDir();
  const { bavail, bsize, blocks } = statfsSync(folder.path);
  const floor = Math.min(100_000_000, blocks * bsize * 0.05);
  expect(() => new DiskReservation(folder.path, bavail * bsize - floor / 2)).toThrow(FULL);
  new DiskReservation(`${folder.path}/none`, 1e18).release();
});

it("DiskRoom treats a size that is not a number as unknown, and keeps counting [UPL-2]", async () => {
  await using folder = await createTempDir();
  const sizes: unknown[] = ["5000000", {}, NaN, Infinity, -5];
  const rooms = sizes.map((size) => new DiskReservation(folder.path, size as number));
  for (const room of rooms) room.release();
  const { bavail, bsize } = statfsSync(folder.path);
  expect(() => new DiskReservation(folder.path, 2 * bavail * bsize)).toThrow(FULL);
  new DiskReservation(folder.path, Math.floor(bavail * bsize * 0.6)).release();
});
