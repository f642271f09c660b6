// Replaces the signing key: stores the new key next to the old one, rewrites everything that depends on it in one batch, and
// swaps the files. A later start compares the fingerprint of that batch with both keys.
import { randomBytes } from "node:crypto";
import { dirname } from "node:path";
import { faultPoint } from "../../base/fault_point.ts";
import type { DataPaths } from "../../base/paths.ts";
import { computeKeyFingerprint, readKeyBytes } from "../../base/token.ts";
import { syncPath, writeWhole } from "../../base/whole_file.ts";
import { conflict, ServiceError } from "../../domain/call/error.ts";
import type { KeyRotation } from "../../domain/system/system.ts";
import { revokeAllSignatures } from "../../store/account/credential.ts";
import type { Database } from "../../store/db/database.ts";
import { findSetting, storeSetting } from "../../store/db/setting.ts";
import { type Answer, answer } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { refuseRuns } from "./system.ts";

const KEY_BYTES = 48;

type RotationDeps = Deps<"db" | "clock" | "paths" | "auth" | "authority" | "secrets">;

/**
 * Replaces the signing key, which ends all logins and tokens and encrypts every secret anew (contract 8.16). Throws
 * `forbidden` for runs. Throws `conflict` while the configuration sets the key, and during open runs, whose tokens would end.
 */
export async function rotateKey(deps: RotationDeps, call: Call): Promise<Answer<KeyRotation>> {
  refuseRuns(call, "rotate the signing key");
  if (deps.auth.jwt_secret !== "") {
    throw conflict(
      "Cannot rotate the signing key: auth.jwt_secret sets it. Change it there and restart the service.",
    );
  }
  // Waits until no version is pending, because a pending version would overwrite the version that replaceKey() sets.
  await deps.authority.getOperatorVersion();
  return answer({ rotated_at: await deps.secrets.change(() => replaceKey(deps, call)) });
}

async function replaceKey(deps: RotationDeps, call: Call): Promise<number> {
  const { db, clock, paths, authority, secrets } = deps;
  // An earlier rotation may have failed after its commit, in which case only the stored key fits the database.
  const unfinished = await finishRotation(db, paths);
  if (unfinished !== null) authority.replaceKey(unfinished);
  const text = randomBytes(KEY_BYTES).toString("base64url");
  const key = readKeyBytes(text);
  const rewritten = await secrets.buildRotation(key);
  await writeWhole(paths.nextKey, `${text}\n`);
  const now = clock.now();
  faultPoint("rotate.pre-commit");
  try {
    await db.writeOr(
      [
        ...revokeAllSignatures(now),
        ...rewritten,
        storeSetting("key_fingerprint", computeKeyFingerprint(key)),
        recordBy(call, now, { kind: "system.key_rotated" }),
      ],
      () => conflict("Cannot rotate the signing key: runs are open. Wait until they end, or cancel them."),
    );
  } catch (error) {
    // A remote server may have committed although its answer was lost, or may do so later. Then both files stay, and the next
    // start decides behind its fence.
    const isRefused = error instanceof ServiceError && error.code === "conflict";
    if (db.remote && !isRefused && !await isCommitted(db, key)) throw error;
    if (await finishRotation(db, paths) === null) throw error;
    authority.replaceKey(key);
    return now;
  }
  faultPoint("rotate.post-commit");
  // Runs that start from now on get a token of the new key.
  authority.replaceKey(key);
  await placeKey(paths);
  faultPoint("rotate.placed");
  return now;
}

/**
 * Finishes an interrupted rotation: keeps the new key if the database was rewritten for it, else the old one. Returns the new
 * key when it was kept. Throws, and keeps both files, when the database cannot be read.
 */
export async function finishRotation(db: Database, paths: DataPaths): Promise<Uint8Array | null> {
  const key = await readNextKey(paths);
  if (key === null) return null;
  if (await findSetting(db, "key_fingerprint") !== computeKeyFingerprint(key)) {
    await Deno.remove(paths.nextKey);
    return null;
  }
  await placeKey(paths);
  return key;
}

async function isCommitted(db: Database, key: Uint8Array): Promise<boolean> {
  return await findSetting(db, "key_fingerprint").catch(() => null) === computeKeyFingerprint(key);
}

/** Reads the key of an unfinished rotation, or returns null without one. */
export async function readNextKey({ nextKey }: DataPaths): Promise<Uint8Array | null> {
  try {
    return readKeyBytes((await Deno.readTextFile(nextKey)).trim());
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

async function placeKey({ nextKey, secretKey }: DataPaths): Promise<void> {
  await Deno.rename(nextKey, secretKey);
  await syncPath(dirname(secretKey));
}
