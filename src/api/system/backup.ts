import { join } from "node:path";
import { packArchive } from "../../base/archive.ts";
import { BACKUP, BACKUP_FORMAT, type Manifest } from "../../domain/system/backup.ts";
import { conflict } from "../../domain/call/error.ts";
import { createLogger } from "../../base/log.ts";
import { type DataPaths, getCtlPath } from "../../base/paths.ts";
import { readCounters, tally } from "../../store/db/counters.ts";
import { record } from "../../store/events/journal.ts";
import { SCHEMA_VERSION } from "../../store/db/migrate.ts";
import { storeSetting } from "../../store/db/setting.ts";
import { VERSION } from "../../base/version.ts";
import type { BackupRequest } from "../../domain/system/system.ts";
import type { Call } from "../call/call.ts";
import { confirmPassword } from "../account/password_check.ts";
import type { Deps } from "../call/services.ts";
import { listBackupContent } from "./backup_content.ts";
import { refuseRuns } from "./system.ts";
import { EXECUTION_STATUSES, TASK_STATUSES } from "../../domain/call/vocabulary.ts";
import type { Database } from "../../store/db/database.ts";

const log = createLogger("backup");

// Each database has at most one backup at a time, as each needs disk space for a copy.
const inProgress = new WeakSet<Database>();

// Length limit of the report on a damaged copy.
const FAULT_CHARACTERS = 1_000;

interface Backup {
  archive: ReadableStream<Uint8Array>;
  createdAt: number;
}

interface Content {
  /** The requester, for the journal. */
  actor: string;
  /** Whether the archive includes the signing key. */
  key: boolean;
}

type BackupDeps = Deps<"db" | "clock" | "paths" | "lifecycle" | "secrets">;

/**
 * Creates a backup. The signing key needs the caller's password, because a stolen token could otherwise sign more
 * tokens (contract 8.16). Throws `forbidden` for runs, `invalid_request`, `rate_limited`, and the errors of
 * makeBackup().
 */
export async function createBackup(
  deps: BackupDeps & Deps<"auth" | "authority" | "loginLimits">,
  call: Call,
  input: BackupRequest,
  address: string,
): Promise<Backup> {
  refuseRuns(call, "make a backup");
  if (input.include_key) await confirmPassword(deps, call, { password: input.password, address });
  return await makeBackup(deps, { actor: call.caller.subject, key: input.include_key });
}

/**
 * Packs a checked copy of the database, then uploads and logs, into a tar archive. Throws `storage_full`, or `conflict`
 * on a libSQL server and during another backup.
 */
export async function makeBackup(
  deps: BackupDeps,
  { actor, key }: Content,
): Promise<Backup> {
  const { db, clock, paths, lifecycle } = deps;
  if (db.remote) {
    throw conflict(
      "Cannot back up: the database is on a libSQL server. Back it up there; " +
        `uploads and logs are files below ${paths.root}.`,
    );
  }
  if (inProgress.has(db)) throw conflict("Cannot back up: another backup is running. Wait until it ends.");
  inProgress.add(db);
  const end = async () => {
    inProgress.delete(db);
    await Deno.remove(paths.backup, { recursive: true }).catch(() => {});
  };
  try {
    await Deno.remove(paths.backup, { recursive: true }).catch(() => {});
    await Deno.mkdir(paths.backup, { mode: 0o700 });
    const createdAt = clock.now();
    const copy = join(paths.backup, BACKUP.database);
    const keyText = key ? await readKey(deps) : null;
    await db.copyTo(copy, lifecycle.stopping);
    // The copied secrets need the key that encrypted them.
    if (key && await readKey(deps) !== keyText) {
      throw conflict("Cannot back up: the signing key was replaced meanwhile. Try again.");
    }
    await checkCopy(paths, copy, lifecycle.stopping);
    const { size } = await Deno.stat(copy);
    const data = { database_bytes: size, include_key: key };
    await db.write([record(createdAt, { kind: "system.backup", actor, data })]);
    const manifest = await buildManifest({ db, paths }, createdAt);
    const files = listBackupContent(paths, lifecycle.stopping, { manifest, copy, key: keyText });
    const archive = await packArchive(files, async (fault) => {
      await end();
      if (fault !== null) {
        return log.warning("The backup was not read to its end: {fault}", { fault: fault.message });
      }
      const noted = db.write([storeSetting("last_backup_at", String(createdAt))]);
      await noted.catch((error) => log.warning("Cannot note that a backup was made: {error}", { error }));
    });
    return { archive, createdAt };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Reads the signing key between rotations. Returns null when the configuration sets it. */
function readKey({ paths, secrets }: BackupDeps): Promise<string | null> {
  return secrets.change(() =>
    Deno.readTextFile(paths.secretKey).catch((error) => {
      if (error instanceof Deno.errors.NotFound) return null;
      throw error;
    })
  );
}

// Runs in a separate process, as the check takes some ms per MB and would block other requests.
async function checkCopy(paths: DataPaths, copy: string, signal: AbortSignal): Promise<void> {
  const words = ["inspect", copy, paths.addon];
  const run = (program: string, args: string[]) =>
    new Deno.Command(program, { args, stdin: "null", signal }).output();
  // Requests have priority over the check.
  const { success, stdout, stderr } = await run("nice", ["-n", "19", getCtlPath(paths), ...words]).catch(
    (error) => {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      return run(getCtlPath(paths), words);
    },
  );
  if (success) return;
  const output = new TextDecoder().decode(stdout) || new TextDecoder().decode(stderr);
  throw new Error(
    `the copy of the database is damaged, or could not be checked: ${
      output.trim().slice(0, FAULT_CHARACTERS)
    }`,
  );
}

async function buildManifest({ db, paths }: Deps<"db" | "paths">, createdAt: number): Promise<Manifest> {
  const counters = await readCounters(db);
  return {
    backup: "svc",
    format: BACKUP_FORMAT,
    created_at: createdAt,
    svc_version: VERSION,
    schema_version: SCHEMA_VERSION,
    data_dir: paths.root,
    counts: {
      workers: counters.worker?.all ?? 0,
      tasks: tally(counters, "task", TASK_STATUSES).total,
      executions: tally(counters, "execution", EXECUTION_STATUSES).total,
    },
  };
}
