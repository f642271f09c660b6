import { z } from "zod";
import type { DataPaths } from "../base/paths.ts";
import { keyFingerprint } from "../base/token.ts";
import { writeWhole } from "../base/whole_file.ts";
import { ConfigError } from "../config/file.ts";
import type { Database } from "../store/db/database.ts";
import { readSchema, SCHEMA_VERSION, UNRELEASED_SCHEMA } from "../store/db/migrate.ts";
import { findSetting, saveSetting } from "../store/db/setting.ts";
import { loadKey } from "./first_start.ts";

// What servers that share a database on a libSQL server have to have in common (contract 18, decision 0021).

const markerSchema = z.object({ database: z.string() });

/**
 * Whether this server may serve this database: it has the schema, the key and the files of the others. Changes nothing. Throws
 * ConfigError that names the way out.
 */
export async function checkShared(db: Database, paths: DataPaths, jwtSecret: string): Promise<void> {
  const { version, isReleased } = await readSchema(db);
  if (version === 0) return;
  if (!isReleased) {
    throw new ConfigError(`Cannot use this database: ${UNRELEASED_SCHEMA}. Nothing was changed`);
  }
  if (version > SCHEMA_VERSION) {
    throw new ConfigError(
      `Cannot stand by for this database: its schema is version ${version}, this program knows ${SCHEMA_VERSION}; ` +
        "install the program here that the other machine has",
    );
  }
  await checkKey(db, paths, jwtSecret);
  await filesFault(db, paths);
}

/** The signing key, which is the database's or becomes it. Throws ConfigError for another one, and makes none where the database has one. */
export async function sharedKey(db: Database, paths: DataPaths, jwtSecret: string): Promise<Uint8Array> {
  await checkKey(db, paths, jwtSecret);
  const key = await loadKey(jwtSecret, paths.secretKey);
  if (await findSetting(db, "key_fingerprint") === null) {
    await db.write([saveSetting("key_fingerprint", keyFingerprint(key))]);
  }
  return key;
}

async function checkKey(db: Database, paths: DataPaths, jwtSecret: string): Promise<void> {
  const wanted = await findSetting(db, "key_fingerprint");
  if (wanted === null) return;
  const way = jwtSecret === ""
    ? `copy <data_dir>/secret.key of the other machine to ${paths.secretKey} (mode 0600), or set auth.jwt_secret on both`
    : "set auth.jwt_secret to that of the other machine";
  const lost = "Is that key lost for good: docs/how-to/run-a-standby.md";
  if (jwtSecret === "" && await Deno.stat(paths.secretKey).catch(() => null) === null) {
    throw new ConfigError(
      `Cannot use this database: its servers sign with the key ${wanted}, and there is none here; ${way}. ${lost}`,
    );
  }
  const here = keyFingerprint(await loadKey(jwtSecret, paths.secretKey));
  if (here === wanted) return;
  throw new ConfigError(
    `Cannot use this database: its servers sign with the key ${wanted}, this one would with ${here}, which ends every ` +
      `login; ${way}. ${lost}`,
  );
}

/** Marks the files as this database's, at its first start. Throws ConfigError when they are not. */
export async function claimFiles(db: Database, paths: DataPaths): Promise<void> {
  const database = await filesFault(db, paths);
  if (await findSetting(db, "files_marked") !== null) return;
  await writeWhole(paths.filesMarker, JSON.stringify({ database }) + "\n");
  await db.write([saveSetting("files_marked", "1")]);
}

async function filesFault(db: Database, { files, filesMarker }: DataPaths): Promise<string> {
  const database = await findSetting(db, "database_id") ?? "";
  const marked = await findSetting(db, "files_marked") !== null;
  const found = await readMarker(filesMarker);
  const way = "set files_dir to the directory that all its servers share, and see that it is mounted";
  if (found !== null && found !== database) {
    throw new ConfigError(
      `Cannot use this database: the files in ${files} belong to another one (${filesMarker} says ${found}, the database is ` +
        `${database}); ${way}`,
    );
  }
  if (found === null && marked) {
    throw new ConfigError(
      `Cannot use this database: its uploads and logs are not in ${files}, where ${filesMarker} is missing; ${way}. ` +
        `Are they lost for good: echo '{"database":"${database}"}' >${filesMarker}`,
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
    return "something that cannot be read";
  }
}
