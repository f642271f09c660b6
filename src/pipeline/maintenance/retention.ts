// Deletes ended rows and files that are older than `retention` allows. Open work is never deleted.
import { join } from "node:path";
import type { Config } from "../../config/schema.ts";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getEventsPath, getLogPath } from "../../base/paths.ts";
import type { Database } from "../../store/db/database.ts";
import { prunePushes } from "../../store/account/device.ts";
import { pruneLedger } from "../../store/workers/budget_ledger.ts";
import { pruneLaunches } from "../../store/workers/launch.ts";
import { pruneNotices } from "../../store/chat/notice.ts";
import { pruneDismissals } from "../../store/events/inbox.ts";
import { pruneTraces } from "../../store/events/trace.ts";
import {
  BATCH_ROWS,
  deleteExecutions,
  deleteUploads,
  listOldExecutions,
  listOldUploads,
  listUnknownPaths,
  listUnknownRuns,
  type Prune,
  pruneAnswers,
  pruneBeeRuns,
  pruneInbound,
  pruneJournal,
  pruneOccurrences,
  pruneQuestions,
  pruneQueueWaits,
  pruneRefreshTokens,
  pruneSentReplies,
  pruneSteers,
  pruneTasks,
  pruneUndeliveredEvents,
  pruneUndeliveredReplies,
  pruneUsage,
} from "../../store/db/retention.ts";
import { WAKEUP } from "../../base/wakeups.ts";
import { Stage, type StageServices } from "../stage/stage.ts";

const log = createLogger("retention");

interface RetentionOptions extends StageServices {
  paths: DataPaths;
  config: Config["retention"];
}

const DAY_MS = 24 * 60 * 60 * 1000;
// Events that a webhook has not received yet are kept this long.
const UNDELIVERED_DAYS = 7;
// Covers the longest period of a budget and the newest rows before it.
const LEDGER_MS = 35 * DAY_MS;
// Most notice rules suppress repetitions for less time. After this time, the next notice counts as the first.
const NOTICES_MS = 30 * DAY_MS;
const POLL_MS = 15 * 60_000;
// A pause between two batches, so that other writes can run.
const PAUSE_MS = 20;
// The other stages are busy right after a start.
const START_DELAY_MS = 10 * 60_000;
// When the wall clock jumps by more than this, deletion stops for an hour: a clock with the wrong year must not delete the database.
const CLOCK_JUMP_MS = 60_000;
const JUMP_PAUSE_MS = 60 * 60_000;
// The row of a younger file may not be written yet.
const ORPHAN_AGE_MS = DAY_MS;

/** Creates the stage that deletes expired rows in batches, and once a day files without a row (contract 7). */
export function createRetention(options: RetentionOptions): Stage {
  const { db, clock, paths } = options;
  let quietUntil = clock.monotonic() + START_DELAY_MS;
  let offset = clock.now() - clock.monotonic();
  let orphansAt = clock.monotonic() + START_DELAY_MS;
  return new Stage(options, { name: "retention", wakeup: WAKEUP.retention, pollMs: POLL_MS, step });

  async function step(signal: AbortSignal): Promise<number> {
    const now = clock.now();
    const monotonic = clock.monotonic();
    if (Math.abs(now - monotonic - offset) > CLOCK_JUMP_MS) {
      log.warning("The clock was set; nothing is deleted by age for an hour");
      offset = now - monotonic;
      quietUntil = monotonic + JUMP_PAUSE_MS;
    }
    if (monotonic < quietUntil) return quietUntil - monotonic;
    if (await pruneRound(options, now)) return PAUSE_MS;
    if (monotonic >= orphansAt) {
      orphansAt = monotonic + DAY_MS;
      await removeOrphanLogs(db, paths, now, signal);
      await removeOrphanUploads(db, paths, now, signal);
    }
    return Infinity;
  }
}

/** Deletes one batch of each kind. Returns whether more may remain. */
async function pruneRound(options: RetentionOptions, now: number): Promise<boolean> {
  const { db, config } = options;
  const oldest = {
    executions: now - config.executions,
    messages: now - config.messages,
    journal: now - config.journal,
  };
  let more = await pruneExecutions(options, oldest.executions);
  const kinds: [Prune, number][] = [
    [pruneTasks, oldest.executions],
    [pruneBeeRuns, oldest.executions],
    [pruneLaunches, oldest.executions],
    [pruneUsage, oldest.executions],
    [pruneQueueWaits, oldest.executions],
    [pruneInbound, oldest.messages],
    [pruneSentReplies, oldest.messages],
    [pruneUndeliveredReplies, oldest.messages],
    [pruneLedger, now - LEDGER_MS],
    [pruneQuestions, oldest.messages],
    [pruneSteers, oldest.messages],
    [pruneJournal, oldest.journal],
    [pruneUndeliveredEvents, Math.min(oldest.journal, now - UNDELIVERED_DAYS * DAY_MS)],
    [pruneOccurrences, oldest.journal],
    [pruneNotices, now - NOTICES_MS],
    [prunePushes, oldest.journal],
    [pruneDismissals, Math.min(oldest.executions, oldest.messages)],
    [pruneTraces, Math.min(oldest.executions, oldest.messages)],
    [pruneAnswers, now - DAY_MS],
    [pruneRefreshTokens, now],
  ];
  for (const [prune, before] of kinds) {
    const { rows } = await db.write([prune(before)]);
    if ((rows[0]?.length ?? 0) >= BATCH_ROWS) more = true;
  }
  return await pruneUploads(options, oldest.messages) || more;
}

// Deletes the files before the rows. After a crash the rows still exist, and the next round continues.
async function pruneExecutions({ db, paths }: RetentionOptions, before: number): Promise<boolean> {
  const ids = await listOldExecutions(db, before);
  if (ids.length === 0) return false;
  for (const id of ids) await Promise.all([remove(getLogPath(paths, id)), remove(getEventsPath(paths, id))]);
  await db.write([deleteExecutions(ids)]);
  return ids.length >= BATCH_ROWS;
}

async function pruneUploads({ db }: RetentionOptions, before: number): Promise<boolean> {
  const paths = await listOldUploads(db, before);
  if (paths.length === 0) return false;
  for (const path of paths) await remove(path);
  await db.write([deleteUploads(paths)]);
  return paths.length >= BATCH_ROWS;
}

/** Deletes logs without a run, which pruned coordinator runs and crashes leave. */
async function removeOrphanLogs(
  db: Database,
  paths: DataPaths,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  for (const folder of await listFolders(paths.logs)) {
    const files = await listFiles(join(paths.logs, folder));
    const ids = [...new Set(files.map((name) => name.replace(/\.(log|jsonl)$/, "")))];
    for (let at = 0; at < ids.length && !signal.aborted; at += BATCH_ROWS) {
      for (const id of await listUnknownRuns(db, ids.slice(at, at + BATCH_ROWS))) {
        for (const end of ["log", "jsonl"]) await removeOld(join(paths.logs, folder, `${id}.${end}`), now);
      }
    }
  }
}

/** Deletes uploads without a row, and folders of deleted sessions. */
async function removeOrphanUploads(
  db: Database,
  paths: DataPaths,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  for (const folder of await listFolders(paths.uploads)) {
    const all = (await listFiles(join(paths.uploads, folder))).map((name) =>
      join(paths.uploads, folder, name)
    );
    for (let at = 0; at < all.length && !signal.aborted; at += BATCH_ROWS) {
      for (const path of await listUnknownPaths(db, all.slice(at, at + BATCH_ROWS))) {
        await removeOld(path, now);
      }
    }
    // Removing a folder that has files fails, which is intended. A young folder may be in use.
    await removeOld(join(paths.uploads, folder), now);
  }
}

async function listFolders(path: string): Promise<string[]> {
  return await listNames(path, (entry) => entry.isDirectory);
}

async function listFiles(path: string): Promise<string[]> {
  return await listNames(path, (entry) => entry.isFile);
}

async function listNames(path: string, wanted: (entry: Deno.DirEntry) => boolean): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(path)).catch(() => []);
  return entries.filter(wanted).map((entry) => entry.name);
}

async function removeOld(path: string, now: number): Promise<void> {
  const changed = (await Deno.stat(path).catch(() => null))?.mtime?.getTime() ?? now;
  if (now - changed > ORPHAN_AGE_MS) await remove(path);
}

async function remove(path: string): Promise<void> {
  await Deno.remove(path).catch(() => {});
}
