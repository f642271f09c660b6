import { type DataPaths, getOwnWorkDir } from "../base/paths.ts";
import type { Database } from "../store/db/database.ts";
import { listWorkDirs } from "../store/workers/worker.ts";

/**
 * Creates the default work directories of workers that were created on another machine, because neither a takeover nor a restore copies
 * these directories (docs/how-to/run-a-standby.md). On one machine, a directory that a user removes stays missing: with a local database,
 * only a data directory without `workers` is new here.
 */
export async function makeOwnWorkDirs(db: Database, paths: DataPaths): Promise<void> {
  const isKnown = await Deno.stat(paths.workers).then(() => true, () => false);
  if (isKnown && !db.remote) return;
  for (const { id, work_dir: path } of await listWorkDirs(db, "")) {
    // If a directory cannot be created, the runs in it report that.
    if ([true, false].some((hasRepo) => path === getOwnWorkDir(paths, id, hasRepo))) {
      await Deno.mkdir(path, { recursive: true, mode: 0o755 }).catch(() => {});
    }
  }
}
