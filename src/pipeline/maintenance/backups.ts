import { WAKEUP } from "../../base/wakeups.ts";
import { createLogger } from "../../base/log.ts";
import { findNextOccurrence } from "../../domain/work/cron.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { formatBackupName, removeOldBackups, storeBackup } from "../../files/scheduled_backups.ts";
import type { Database } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { findSetting, storeSetting } from "../../store/db/setting.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("backup");

const POLL_MS = 15_000;
// Another backup is in progress.
const BUSY_MS = 60_000;
// A large backup takes long, and the stage counts as healthy meanwhile.
const STALLED_MS = 6 * 60 * 60_000;

interface BackupOptions extends StageServices {
  timeZone: string;
  /** Schedule ("" for never), number of files to keep, and directory (contract 8.16). */
  config: { cron: string; keep: number; dir: string };
  /** Creates the archive without the signing key. */
  make: () => Promise<{ archive: ReadableStream<Uint8Array>; createdAt: number }>;
}

/**
 * Creates the stage that makes a backup at each time of `backup.cron`, and one at the start for times that passed while the service was
 * down. The journal and the doctor's report contain a failure, and the next time tries again.
 */
export function createBackups(options: BackupOptions): Stage {
  const { db, clock, timeZone, config } = options;
  return new Stage(options, {
    name: "backup",
    wakeup: WAKEUP.backup,
    pollMs: POLL_MS,
    stalledMs: STALLED_MS,
    step,
  });

  async function step(signal: AbortSignal): Promise<number> {
    if (config.cron === "") return Infinity;
    const now = clock.now();
    const due = findNextOccurrence(config.cron, timeZone, await findDoneUntil(db, now));
    if (due === null || due > now) return due === null ? Infinity : due - now;
    try {
      await makeBackup(options, signal);
      await storeResult(options, now, "");
    } catch (error) {
      // The service stops. Its next start makes the backup.
      if (signal.aborted) return Infinity;
      if (error instanceof ServiceError && error.code === "conflict") return BUSY_MS;
      const fault = error instanceof Error ? error.message.replace(/ \(os error.*/, "") : String(error);
      log.error("Cannot make the scheduled backup: {fault}", { fault });
      await storeResult(options, now, fault);
    }
    return 0;
  }
}

// A time in the future is ignored: the clock may have been set back.
async function findDoneUntil(db: Database, now: number): Promise<number> {
  const stored = await findSetting(db, "backup_schedule_at");
  if (stored !== null && Number(stored) <= now) return Number(stored);
  await db.write([storeSetting("backup_schedule_at", String(now))]);
  return now;
}

async function makeBackup({ config, make }: BackupOptions, signal: AbortSignal): Promise<void> {
  const { archive, createdAt } = await make();
  const name = formatBackupName(createdAt);
  try {
    await storeBackup({ folder: config.dir, name, content: archive }, signal);
  } catch (error) {
    // When the file cannot be opened, an unread archive would block the next backup.
    await archive.cancel().catch(() => {});
    throw error;
  }
  await removeOldBackups(config.dir, config.keep, name);
}

async function storeResult({ db }: BackupOptions, now: number, fault: string): Promise<void> {
  await db.write([
    storeSetting("backup_schedule_at", String(now)),
    storeSetting("backup_fault", fault),
    ...(fault === ""
      ? []
      : [record(now, { kind: "system.backup_failed", actor: "system", data: { detail: fault } })]),
  ]);
}
