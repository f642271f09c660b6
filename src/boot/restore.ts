import { basename, dirname, join } from "node:path";
import { ArchiveError, unpackArchive } from "../base/archive.ts";
import { loadConfig, type LoadedConfig } from "../config/schema.ts";
import { EXIT, getExitCode } from "./exit_code.ts";
import { DataMarker, getFilePath } from "./data_marker.ts";
import { BACKUP, type Manifest, manifestSchema } from "../domain/system/backup.ts";
import { ServiceError } from "../domain/call/error.ts";
import { type DataLock, lockDataDirectory, openDataDirectory } from "./data_directory.ts";
import { buildDataPaths, type DataPaths } from "../base/paths.ts";
import { syncPath, writeWhole } from "../base/whole_file.ts";
import { setAddonDirectory } from "../store/db/addon.ts";
import { revokeAllLogins } from "../store/account/credential.ts";
import { Database, inspect } from "../store/db/database.ts";
import { record } from "../store/events/journal.ts";
import { readSchema, SCHEMA_VERSION, UNRELEASED_SCHEMA } from "../store/db/migrate.ts";
import { storeSetting } from "../store/db/setting.ts";
import { relocate } from "../store/db/relocate.ts";

interface RestoreOptions {
  file: string;
  config: string | undefined;
  /** Ends all logins: the next start creates a new signing key. */
  newKey: boolean;
  /** Pauses all schedules until an operator resumes them (contract 8.16). */
  paused: boolean;
  /** Called before the first change. */
  confirm: (question: string) => Promise<boolean>;
  say: (text: string) => void;
}

/**
 * Runs `svc restore`: replaces the content of the data directory with a backup, and keeps the replaced data in a folder of the directory.
 * Unpacks and checks the whole archive before the first change (reliability BAK-4). Returns the exit code (contract 6).
 */
export async function restore(options: RestoreOptions): Promise<number> {
  let lock: DataLock | null = null;
  try {
    const loaded = await loadConfig(options.config, Deno.env.toObject());
    const database = getFilePath(loaded.config.database.url);
    if (database === null) {
      options.say(
        "svc: Cannot restore: the database is on a libSQL server. Restore it there, with the tools of the server.",
      );
      return EXIT.config;
    }
    Deno.umask(0o077);
    const paths = buildDataPaths(await openDataDirectory(loaded.config.data_dir));
    lock = await lockDataDirectory(paths.lock, database);
    setAddonDirectory(paths.addon);
    return await restoreInto(paths, database, loaded, options);
  } catch (error) {
    options.say(`svc: ${error instanceof Error ? error.message : error}`);
    // An unreadable archive and a confirmation without a terminal have separate exit codes.
    return error instanceof Error && "code" in error && typeof error.code === "number"
      ? error.code
      : getExitCode(error);
  } finally {
    lock?.close();
  }
}

async function restoreInto(
  paths: DataPaths,
  database: string,
  loaded: LoadedConfig,
  options: RestoreOptions,
): Promise<number> {
  const { file, paused, confirm, say } = options;
  await Deno.remove(paths.restore, { recursive: true }).catch(() => {});
  try {
    const { manifest, hasKey } = await unpack(file, paths.restore);
    const configuredKey = loaded.config.auth.jwt_secret !== "";
    // If the key is configured, the archive contains no key, and no login depends on the archive.
    const newKey = options.newKey || !hasKey && !configuredKey;
    const aside = join(paths.root, `before-restore-${formatStamp(new Date())}`);
    say(describe(manifest, paths.root, aside));
    if (newKey && !options.newKey) {
      say("The backup has no signing key. The next start creates a new one, and every login ends.");
    }
    if (!await confirm("Restore it?")) {
      say("svc: Canceled. Changed nothing.");
      return EXIT.declined;
    }
    await prepare(manifest, paths, { newKey, paused });
    await exchange(paths, database, aside);
    const db = await Database.open(`file:${database}`);
    await (await DataMarker.read(paths, loaded.config.database.url)).write(db);
    await db.close();
    // Removing succeeds only for an empty folder: a new data directory had no data.
    const isKept = await Deno.remove(aside).then(() => false, () => true);
    const notice = isKept
      ? `The replaced data is in ${aside}; delete that folder when the service works. `
      : "";
    say(`Restored. ${notice}Start the service with \`svc serve\`.`);
    if (paused) say("Every schedule is paused. Resume them with `svc ctl system resume`.");
    if (newKey && configuredKey) {
      say("auth.jwt_secret sets the signing key. Change it there, too.");
    }
    return EXIT.done;
  } finally {
    await Deno.remove(paths.restore, { recursive: true }).catch(() => {});
  }
}

/** Unpacks and checks the archive. Throws an Error for the operator. */
async function unpack(file: string, folder: string): Promise<{ manifest: Manifest; hasKey: boolean }> {
  const refuse = (why: string) =>
    new Error(`Cannot restore ${file}: ${why.replace(/\.$/, "")}. Nothing was changed.`);
  const archive = await openArchive(file, refuse);
  await Deno.mkdir(folder, { mode: 0o700 });
  let names: string[];
  try {
    names = await unpackArchive(archive.readable, folder);
    const known = Object.values(BACKUP).map(String);
    const strange = names.find((name) => !known.includes(name.split("/")[0] ?? ""));
    if (strange !== undefined || !names.includes(BACKUP.database)) {
      throw refuse("it is not a backup of this service");
    }
  } catch (error) {
    if (error instanceof ArchiveError) throw refuse(error.message);
    throw error;
  }
  const text = await Deno.readTextFile(join(folder, BACKUP.manifest)).catch(() => "null");
  const manifest = manifestSchema.safeParse(JSON.parse(text));
  if (!manifest.success) throw refuse("it is not a backup of this service, or from a later version");
  const database = join(folder, BACKUP.database);
  const faults = await inspect(database);
  if (faults.length > 0) throw refuse(`its database is damaged: ${faults.join("; ")}`);
  const db = await Database.open(`file:${database}`);
  const { isReleased } = await readSchema(db).finally(() => db.close());
  if (!isReleased) throw refuse(UNRELEASED_SCHEMA);
  if (manifest.data.schema_version > SCHEMA_VERSION) {
    throw refuse(
      `its schema is version ${manifest.data.schema_version}, but this program supports version ${SCHEMA_VERSION}. ` +
        `Restore it with svc ${manifest.data.svc_version} or later`,
    );
  }
  return { manifest: manifest.data, hasKey: names.includes(BACKUP.secretKey) };
}

/** Opens the archive. An unreadable file is a usage error (contract 8.7). */
async function openArchive(file: string, refuse: (why: string) => Error): Promise<Deno.FsFile> {
  try {
    const archive = await Deno.open(file, { read: true });
    if (!(await archive.stat()).isDirectory) return archive;
    archive.close();
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "the file does not exist" : "permission denied";
    throw Object.assign(refuse(why), { code: EXIT.config });
  }
  throw Object.assign(refuse("it is a directory"), { code: EXIT.config });
}

function describe(manifest: Manifest, root: string, aside: string): string {
  const { workers, tasks, executions } = manifest.counts;
  return `A backup of ${
    new Date(manifest.created_at).toISOString()
  } by svc ${manifest.svc_version}, valid: ` +
    `${workers} workers, ${tasks} tasks, ${executions} executions.\n` +
    `It replaces the database, uploads, logs and signing key in ${root}.\nThe replaced data moves to ${aside}.`;
}

/** Adapts the unpacked database to this directory before it moves to its place. */
async function prepare(
  manifest: Manifest,
  paths: DataPaths,
  { newKey, paused }: Pick<RestoreOptions, "newKey" | "paused">,
): Promise<void> {
  const path = join(paths.restore, BACKUP.database);
  const db = await Database.open(`file:${path}`);
  try {
    if ((await readSchema(db)).version !== manifest.schema_version) {
      throw new ServiceError(
        "unavailable",
        "Cannot restore: the database has another schema version than the manifest",
      );
    }
    await relocate(db, manifest.data_dir, paths.root);
    const now = Date.now();
    await db.write([
      ...(newKey ? revokeAllLogins(now) : []),
      ...(paused ? [storeSetting("schedules_paused", "1")] : []),
      record(now, { kind: "system.restored", data: { created_at: manifest.created_at, paused } }),
    ]);
    // Writes the changes in the WAL file to the database file, because only the database file is moved to its place.
    await db.checkpoint().catch((error) => {
      throw new Error(`Cannot restore: ${error.message} in ${path}. Nothing was changed.`);
    });
  } finally {
    await db.close();
  }
  const wal = await Deno.stat(`${path}-wal`).catch(() => null);
  if (wal !== null && wal.size > 0) {
    throw new Error("Cannot restore: some changes are not in the database file. Nothing was changed.");
  }
  if (newKey) await Deno.remove(join(paths.restore, BACKUP.secretKey)).catch(() => {});
}

/** Moves the current data aside and the backup to its place. The service does not start until this is complete. */
async function exchange(paths: DataPaths, database: string, aside: string): Promise<void> {
  await Deno.mkdir(aside, { mode: 0o700 });
  await writeWhole(paths.restoring, `${aside}\n`);
  const files = [database, `${database}-wal`, `${database}-shm`, `${database}-journal`];
  for (const path of [...files, paths.uploads, paths.logs, paths.secretKey, paths.nextKey, paths.marker]) {
    await moveIfExists(path, join(aside, basename(path)));
  }
  await moveIfExists(join(paths.restore, BACKUP.database), database);
  await moveIfExists(join(paths.restore, BACKUP.uploads), paths.uploads);
  await moveIfExists(join(paths.restore, BACKUP.logs), paths.logs);
  await moveIfExists(join(paths.restore, BACKUP.secretKey), paths.secretKey);
  for (const folder of new Set([paths.root, dirname(database)])) await syncPath(folder);
  await Deno.remove(paths.restoring);
  await syncPath(paths.root);
}

async function moveIfExists(from: string, to: string): Promise<void> {
  await move(from, to).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

// If the target is on another file system, copies the file, syncs the copy and renames it.
async function move(from: string, to: string): Promise<void> {
  const isOtherFileSystem = await Deno.rename(from, to).then(() => false, (error) => {
    if (error.code !== "EXDEV") throw error;
    return true;
  });
  if (!isOtherFileSystem) return;
  await Deno.copyFile(from, `${to}.part`);
  await syncPath(`${to}.part`);
  await Deno.rename(`${to}.part`, to);
  await Deno.remove(from);
}

function formatStamp(date: Date): string {
  return date.toISOString().slice(0, 19).replace(/[-:]/g, "").replace("T", "-");
}
