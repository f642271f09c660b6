// Ended things -> gone, when they are older than retention says. Nothing that is still to be done is ever touched.
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Config } from "../config/schema.ts";
import { logger } from "../base/log.ts";
import { type DataPaths, eventsPath, logPath } from "../base/paths.ts";
import type { Database } from "../store/database.ts";
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
  pruneGivenUp,
  pruneInbound,
  pruneJournal,
  pruneOccurrences,
  pruneRefreshTokens,
  pruneSent,
  pruneTasks,
  pruneUsage,
} from "../store/retention.ts";
import { BELL, type Bells } from "../base/bells.ts";
import { Stage } from "./loop.ts";

const log = logger("retention");

/** What retention works with. */
export interface RetentionOptions {
  db: Database;
  clock: Clock;
  bells: Bells;
  paths: DataPaths;
  config: Config["retention"];
}

const DAY_MS = 24 * 60 * 60 * 1000;
const POLL_MS = 15 * 60_000;
// Between two batches others write.
const PAUSE_MS = 20;
// Not right after a start, when everybody else has work to do.
const START_DELAY_MS = 10 * 60_000;
// A wall clock that leaps by more than this is not believed for an hour: one that was set to the wrong year must not
// cost what is in the database.
const LEAP_MS = 60_000;
const DISBELIEF_MS = 60 * 60_000;
// A younger file without a row may be one whose row is just being written.
const ORPHAN_AGE_MS = DAY_MS;

/** Deletes what is older than `retention` says, batch by batch, and files that nothing knows once a day (contract 7). */
export function createRetention(options: RetentionOptions): Stage {
  const { db, clock, bells, paths } = options;
  let quietUntil = clock.monotonic() + START_DELAY_MS;
  let offset = clock.now() - clock.monotonic();
  let orphansAt = clock.monotonic() + START_DELAY_MS;
  return new Stage({ name: "retention", bell: BELL.retention, clock, bells, pollMs: POLL_MS, step });

  async function step(signal: AbortSignal): Promise<number> {
    const now = clock.now();
    const monotonic = clock.monotonic();
    if (Math.abs(now - monotonic - offset) > LEAP_MS) {
      log.warning("The clock was set; nothing is deleted by age for an hour");
      offset = now - monotonic;
      quietUntil = monotonic + DISBELIEF_MS;
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

/** One batch of each kind. Answers whether there may be more. */
async function pruneRound(options: RetentionOptions, now: number): Promise<boolean> {
  const { db, config } = options;
  const kept = {
    executions: now - config.executions,
    messages: now - config.messages,
    journal: now - config.journal,
  };
  let more = await pruneExecutions(options, kept.executions);
  const kinds: [Prune, number][] = [
    [pruneTasks, kept.executions],
    [pruneBeeRuns, kept.executions],
    [pruneUsage, kept.executions],
    [pruneInbound, kept.messages],
    [pruneSent, kept.messages],
    [pruneGivenUp, kept.messages],
    [pruneJournal, kept.journal],
    [pruneOccurrences, kept.journal],
    [pruneAnswers, now - DAY_MS],
    [pruneRefreshTokens, now],
  ];
  for (const [prune, before] of kinds) {
    const { rows } = await db.write([prune(before)]);
    if ((rows[0]?.length ?? 0) >= BATCH_ROWS) more = true;
  }
  return await pruneUploads(options, kept.messages) || more;
}

// Files go first: whoever is killed in between finds the row again and goes on.
async function pruneExecutions({ db, paths }: RetentionOptions, before: number): Promise<boolean> {
  const ids = await listOldExecutions(db, before);
  if (ids.length === 0) return false;
  for (const id of ids) await Promise.all([remove(logPath(paths, id)), remove(eventsPath(paths, id))]);
  await db.write([deleteExecutions(ids)]);
  return ids.length >= BATCH_ROWS;
}

async function pruneUploads({ db }: RetentionOptions, before: number): Promise<boolean> {
  const files = await listOldUploads(db, before);
  if (files.length === 0) return false;
  for (const path of files) await remove(path);
  await db.write([deleteUploads(files)]);
  return files.length >= BATCH_ROWS;
}

/** Logs of runs that are gone: the coordinator's when they are pruned, others where a kill came in between. */
async function removeOrphanLogs(
  db: Database,
  paths: DataPaths,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  for (const folder of await folders(paths.logs)) {
    const names = await files(join(paths.logs, folder));
    const ids = [...new Set(names.map((name) => name.replace(/\.(log|jsonl)$/, "")))];
    for (let at = 0; at < ids.length && !signal.aborted; at += BATCH_ROWS) {
      for (const id of await listUnknownRuns(db, ids.slice(at, at + BATCH_ROWS))) {
        for (const end of ["log", "jsonl"]) await removeOld(join(paths.logs, folder, `${id}.${end}`), now);
      }
    }
  }
}

/** Uploads without a row, and folders of sessions that are gone. */
async function removeOrphanUploads(
  db: Database,
  paths: DataPaths,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  for (const folder of await folders(paths.uploads)) {
    const all = (await files(join(paths.uploads, folder))).map((name) => join(paths.uploads, folder, name));
    for (let at = 0; at < all.length && !signal.aborted; at += BATCH_ROWS) {
      for (const path of await listUnknownPaths(db, all.slice(at, at + BATCH_ROWS))) {
        await removeOld(path, now);
      }
    }
    // Only an empty one lets itself be removed, and only one in which nothing begins just now.
    await removeOld(join(paths.uploads, folder), now);
  }
}

async function folders(path: string): Promise<string[]> {
  return await names(path, (entry) => entry.isDirectory);
}

async function files(path: string): Promise<string[]> {
  return await names(path, (entry) => entry.isFile);
}

async function names(path: string, wanted: (entry: Deno.DirEntry) => boolean): Promise<string[]> {
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
