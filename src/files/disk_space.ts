import { statfsSync } from "node:fs";
import { ServiceError } from "../domain/call/error.ts";

// Uploads leave free space for database and logs: a share on a small disk.
const FLOOR_BYTES = 100_000_000;
const FLOOR_SHARE = 0.05;

// Bytes that uploads have reserved and not written yet. Checking the disk and reserving is synchronous, so it cannot
// interleave.
let reserved = 0;

/** The disk space that one incoming file reserves. */
export class DiskReservation {
  readonly #folder: string;
  #left = 0;

  /** Reserves space for a file in `folder`. `bytes` is 0 for an unknown size. Throws `storage_full`. */
  constructor(folder: string, bytes: number) {
    this.#folder = folder;
    this.#reserve(bytes);
  }

  /** Reserves space for `bytes` more bytes. Throws `storage_full`. */
  reserve(bytes: number): void {
    if (bytes > this.#left) this.#reserve(bytes - this.#left);
  }

  /** Frees the reservation of written bytes. */
  releaseWritten(bytes: number): void {
    const used = Math.min(bytes, this.#left);
    this.#left -= used;
    reserved -= used;
  }

  /** Frees the unused reservation. */
  release(): void {
    reserved -= this.#left;
    this.#left = 0;
  }

  // Another server may report a size that is not a number, which would corrupt the total.
  #reserve(size: number): void {
    const bytes = Number.isFinite(size) ? Math.max(0, size) : 0;
    const free = measureFreeBytes(this.#folder);
    if (free - reserved < bytes) {
      throw new ServiceError("storage_full", "Cannot store the file: the disk is nearly full");
    }
    this.#left += bytes;
    reserved += bytes;
  }
}

/** Free bytes for uploads on a folder's disk. Negative when less than the minimum is free. */
function measureFreeBytes(folder: string): number {
  try {
    const { bavail, bsize, blocks } = statfsSync(folder);
    return bavail * bsize - Math.min(FLOOR_BYTES, blocks * bsize * FLOOR_SHARE);
  } catch {
    return Infinity;
  }
}
