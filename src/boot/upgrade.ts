import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { ServiceError } from "../domain/call/error.ts";
import { createLogger } from "../base/log.ts";
import type { DataPaths } from "../base/paths.ts";
import { syncPath } from "../base/whole_file.ts";
import { Database } from "../store/db/database.ts";
import { listFaults } from "../store/events/health.ts";
import { migrate, type Migration, MIGRATIONS, readSchema } from "../store/db/migrate.ts";

const log = createLogger("database");

/** Number of copies that are kept from before upgrades. The oldest copies are deleted. */
export const UPGRADE_BACKUPS_MAX = 3;

/**
 * Upgrades a database to the schema of this program, after copying it to `<data_dir>/backups` and checking the copy. Throws ServiceError
 * and changes nothing if the disk has no space for the copy, or if the schema is newer (reliability BAK-6).
 */
export async function upgrade(
  db: Database,
  paths: DataPaths,
  clock: Clock,
  steps: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const { version: from, isReleased } = await readSchema(db);
  if (isReleased && from > 0 && from < steps.length) {
    const copy = await backUp(db, paths.backups, from, clock.now());
    log.info("Upgrading the database from schema {from} to {to}. The old version is in {copy}.", {
      from,
      to: steps.length,
      copy: copy ?? "the backup of its libSQL server",
    });
  }
  await migrate(db, clock.now(), steps);
}

async function backUp(db: Database, folder: string, version: number, now: number): Promise<string | null> {
  if (db.remote) return null;
  const at = new Date(now).toISOString().replace(/\..*/, "").replaceAll(":", "-");
  const path = join(folder, `schema-${version}-${at}.db`);
  const partial = `${path}.part`;
  try {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
    await Deno.remove(partial).catch(() => {});
    await db.copyTo(partial, new AbortController().signal);
    await check(partial);
    await syncPath(partial);
    await Deno.rename(partial, path);
    await syncPath(folder);
    await removeOldest(folder);
    return path;
  } catch (error) {
    await Deno.remove(partial).catch(() => {});
    throw new ServiceError(
      "storage_full",
      `Cannot upgrade the database: the backup in ${folder} failed (${
        error instanceof Error ? error.message : error
      }). Nothing was changed. Free disk space there, or start the older program again.`,
      { cause: error },
    );
  }
}

async function check(path: string): Promise<void> {
  const copy = await Database.open(`file:${path}`);
  try {
    const [fault] = await listFaults(copy);
    if (fault !== undefined) throw new Error(`the copy is damaged: ${fault}`);
  } finally {
    await copy.close();
    for (const end of ["-wal", "-shm"]) await Deno.remove(path + end).catch(() => {});
  }
}

async function removeOldest(folder: string): Promise<void> {
  const copies: { path: string; at: number }[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    if (!/^schema-\d+-.*\.db$/.test(name)) continue;
    const path = join(folder, name);
    copies.push({ path, at: (await Deno.stat(path)).mtime?.getTime() ?? 0 });
  }
  copies.sort((a, b) => b.at - a.at || (a.path < b.path ? 1 : -1));
  for (const { path } of copies.slice(UPGRADE_BACKUPS_MAX)) await Deno.remove(path);
}
