import { statfsSync } from "node:fs";
import { ServiceError } from "../domain/call/error.ts";

// The database and the logs need what is left of a disk: uploads never take the last of it. Of a small one it is a share.
const FLOOR_BYTES = 100_000_000;
const FLOOR_SHARE = 0.05;

// What all uploads together have reserved and not written yet. Between a look at the disk and a reservation nothing else runs.
let reserved = 0;

/** The room that one file on its way in has on its disk (reliability UPL-2). */
export class DiskRoom {
  readonly #folder: string;
  #left = 0;

  /** Reserves room for a file in `folder` whose size is known, or 0. Throws `storage_full`. */
  constructor(folder: string, bytes: number) {
    this.#folder = folder;
    this.#reserve(bytes);
  }

  /** Makes sure that so many bytes more may be written. Throws `storage_full`. */
  need(bytes: number): void {
    if (bytes > this.#left) this.#reserve(bytes - this.#left);
  }

  /** Notes that so many bytes were written. */
  written(bytes: number): void {
    const used = Math.min(bytes, this.#left);
    this.#left -= used;
    reserved -= used;
  }

  /** Gives back what was reserved and not written. */
  release(): void {
    reserved -= this.#left;
    this.#left = 0;
  }

  // What another server says of a file's size may be no number, and one that is none would spoil the count of all.
  #reserve(said: number): void {
    const bytes = Number.isFinite(said) ? Math.max(0, said) : 0;
    const room = roomOf(this.#folder);
    if (room - reserved < bytes) {
      throw new ServiceError("storage_full", "Cannot store the file: the disk is nearly full");
    }
    this.#left += bytes;
    reserved += bytes;
  }
}

/** How many bytes uploads may still take of the disk of a folder; negative when they have less than that. */
function roomOf(folder: string): number {
  try {
    const { bavail, bsize, blocks } = statfsSync(folder);
    return bavail * bsize - Math.min(FLOOR_BYTES, blocks * bsize * FLOOR_SHARE);
  } catch {
    return Infinity;
  }
}
