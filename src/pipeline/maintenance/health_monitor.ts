// Reports once when a platform is down or back, and when the disk is nearly full.
import { statfs } from "node:fs/promises";
import { WAKEUP } from "../../base/wakeups.ts";
import type { Platform } from "../../platform/platform.ts";
import { record } from "../../store/events/journal.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const POLL_MS = 5_000;
// A connection that recovers sooner is not reported.
const DOWN_MS = 60_000;
const MB = 1_000_000;
/** The monitor reports less free space than this, and reports again only after there was twice as much. */
const DISK_LOW_BYTES = 1_000 * MB;

interface HealthMonitorOptions extends StageServices {
  platforms: readonly Platform[];
  /** The data directory. */
  root: string;
  /** Measures the free space in bytes. Tests replace it. */
  freeBytes?: (root: string) => Promise<number>;
}

/**
 * Creates the stage that records in the journal when a platform is down for a minute, when it is back, and when the disk is nearly full
 * (contract 11).
 */
export function createHealthMonitor(options: HealthMonitorOptions): Stage {
  const { db, clock, platforms, root, freeBytes = measureFree } = options;
  const down = new Set<string>();
  let low = false;
  return new Stage(options, { name: "health", wakeup: WAKEUP.health, pollMs: POLL_MS, step });

  async function step(): Promise<number> {
    const now = clock.now();
    for (const platform of platforms) await checkPlatform(platform, now);
    await checkDisk(now);
    return Infinity;
  }

  async function checkPlatform(platform: Platform, now: number): Promise<void> {
    const { state, since, error } = platform.health();
    const { name } = platform;
    if (!down.has(name) && (state === "refused" || state === "down" && now - since >= DOWN_MS)) {
      await db.write([record(now, { kind: "platform.down", data: { platform: name, state, error } })]);
      down.add(name);
    } else if (down.has(name) && state === "connected") {
      await db.write([record(now, { kind: "platform.up", data: { platform: name } })]);
      down.delete(name);
    }
  }

  async function checkDisk(now: number): Promise<void> {
    const free = await freeBytes(root);
    if (!low && free < DISK_LOW_BYTES) {
      const detail = `${Math.floor(free / MB)} MB are free in ${root}`;
      await db.write([record(now, { kind: "system.disk_low", data: { detail, free } })]);
      low = true;
    } else if (free >= 2 * DISK_LOW_BYTES) low = false;
  }
}

async function measureFree(root: string): Promise<number> {
  const { bavail, bsize } = await statfs(root);
  return bavail * bsize;
}
