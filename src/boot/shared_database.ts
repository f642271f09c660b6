import { z } from "zod";
import type { DataPaths } from "../base/paths.ts";
import { computeKeyFingerprint } from "../base/token.ts";
import { writeWhole } from "../base/whole_file.ts";
import { ConfigError } from "../config/file.ts";
import type { Database } from "../store/db/database.ts";
import { readSchema, SCHEMA_VERSION, UNRELEASED_SCHEMA } from "../store/db/migrate.ts";
import { findSetting, storeSetting } from "../store/db/setting.ts";
import { readNextKey } from "../api/system/key_rotation.ts";
import { loadKey } from "./first_start.ts";

const markerSchema = z.object({ database: z.string() });

/**
 * Checks that this server has the schema, the key and the files of the other servers of this database (contract 18, decision 0021). Changes
 * nothing. Throws ConfigError with a remedy.
 */
export async function checkShared(db: Database, paths: DataPaths, jwtSecret: string): Promise<void> {
  const { version, isReleased } = await readSchema(db);
  if (version === 0) return;
  if (!isReleased) {
    throw new ConfigError(`Cannot use this database: ${UNRELEASED_SCHEMA}. Nothing was changed.`);
  }
  if (version > SCHEMA_VERSION) {
    throw new ConfigError(
      `Cannot stand by for this database: its schema is version ${version}, but this program supports version ${SCHEMA_VERSION}. ` +
        "Install the version of the other machine.",
    );
  }
  await checkKey(db, paths, jwtSecret);
  await checkFiles(db, paths);
}

/** Loads the signing key and stores its fingerprint in a new database. Throws ConfigError when the database has another key. */
export async function loadSharedKey(db: Database, paths: DataPaths, jwtSecret: string): Promise<Uint8Array> {
  await checkKey(db, paths, jwtSecret);
  const key = await loadKey(jwtSecret, paths.secretKey);
  if (await findSetting(db, "key_fingerprint") === null) {
    await db.write([storeSetting("key_fingerprint", computeKeyFingerprint(key))]);
  }
  return key;
}

async function checkKey(db: Database, paths: DataPaths, jwtSecret: string): Promise<void> {
  const expected = await findSetting(db, "key_fingerprint");
  if (expected === null) return;
  const remedy = jwtSecret === ""
    ? `Copy <data_dir>/secret.key of the other machine to ${paths.secretKey} (mode 0600), or set auth.jwt_secret on both`
    : "Set auth.jwt_secret to the value of the other machine";
  const lostKeyHint = "If that key is lost, see docs/how-to/run-a-standby.md.";
  if (jwtSecret === "" && await Deno.stat(paths.secretKey).catch(() => null) === null) {
    throw new ConfigError(
      `Cannot use this database: its servers sign with the key ${expected}, and this machine has none. ${remedy}. ${lostKeyHint}`,
    );
  }
  const here = computeKeyFingerprint(await loadKey(jwtSecret, paths.secretKey));
  if (here === expected) return;
  // A rotation that was killed after its commit. The start finishes it once it owns the database.
  const next = jwtSecret === "" ? await readNextKey(paths) : null;
  if (next !== null && computeKeyFingerprint(next) === expected) return;
  throw new ConfigError(
    `Cannot use this database: its servers sign with the key ${expected}, this one would sign with ${here} and end every ` +
      `login. ${remedy}. ${lostKeyHint}`,
  );
}

/** Marks the files directory for this database at the first start. Throws ConfigError when the files belong to another database. */
export async function claimFiles(db: Database, paths: DataPaths): Promise<void> {
  const database = await checkFiles(db, paths);
  if (await findSetting(db, "files_marked") !== null) return;
  await writeWhole(paths.filesMarker, JSON.stringify({ database }) + "\n");
  await db.write([storeSetting("files_marked", "1")]);
}

async function checkFiles(db: Database, { files, filesMarker }: DataPaths): Promise<string> {
  const database = await findSetting(db, "database_id") ?? "";
  const marked = await findSetting(db, "files_marked") !== null;
  const found = await readMarker(filesMarker);
  const remedy = "Set files_dir to the directory that all its servers share, and check that it is mounted";
  if (found !== null && found !== database) {
    throw new ConfigError(
      `Cannot use this database: the files in ${files} belong to another one (${filesMarker} contains ${found}, the database is ` +
        `${database}). ${remedy}.`,
    );
  }
  if (found === null && marked) {
    throw new ConfigError(
      `Cannot use this database: its uploads and logs are not in ${files}, where ${filesMarker} is missing. ${remedy}. ` +
        `If they are lost: echo '{"database":"${database}"}' >${filesMarker}`,
    );
  }
  return database;
}

async function readMarker(path: string): Promise<string | null> {
  const text = await Deno.readTextFile(path).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw new ConfigError(`Cannot read ${path}: ${error instanceof Error ? error.message : error}`);
  });
  if (text === null) return null;
  try {
    return markerSchema.parse(JSON.parse(text)).database;
  } catch {
    return "unreadable content";
  }
}
