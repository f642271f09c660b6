import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import {
  CHOSEN_COST,
  GENERATED_COST,
  generatePassword,
  hashPassword,
  verifyPassword,
} from "../api/account/password.ts";
import { ConfigError } from "../config/file.ts";
import type { LoadedConfig } from "../config/schema.ts";
import {
  changePassword,
  type Credential,
  deleteRefreshTokens,
  findCredential,
  storeCredential,
} from "../store/account/credential.ts";
import { type Database, isDuplicate, type Statement } from "../store/db/database.ts";
import { record } from "../store/events/journal.ts";
import { endLogins, findOperator, findUserByName, storeOperator } from "../store/account/user.ts";
import { backoffMs } from "../base/backoff.ts";
import { type Clock, sleep } from "../base/clock.ts";
import { createId } from "../base/id.ts";
import { createLogger } from "../base/log.ts";
import { readKeyBytes } from "../base/token.ts";
import { writeWhole } from "../base/whole_file.ts";

const KEY_BYTES = 48;
const COMPARE_BACKOFF = { firstMs: 1_000, lastMs: 60_000 };

const log = createLogger("auth");

/**
 * Loads the configured signing key, or else the key in the data directory. The first start creates that key with mode 0600 (contract 2).
 */
export async function loadKey(configured: string, path: string): Promise<Uint8Array> {
  if (configured !== "") return readKeyBytes(configured);
  try {
    return readKeyBytes((await Deno.readTextFile(path)).trim());
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      throw new Error(
        `Cannot use the signing key ${path}: ${error instanceof Error ? error.message : error}`,
      );
    }
  }
  const secret = Buffer.from(randomBytes(KEY_BYTES)).toString("base64url");
  await writeWhole(path, secret + "\n");
  return readKeyBytes(secret);
}

export interface Operator {
  /** The id of the user. */
  id: string;
  credential: Credential;
  /** The password that this start generated, or null. */
  generated: string | null;
  /**
   * Compares the password of the environment with the stored hash, and stores the hash of a changed password. The start does not wait for
   * the second that this takes. Resolves with the version that logins need. Null without a comparison.
   */
  compare: ((stopping: AbortSignal) => Promise<number>) | null;
}

/**
 * Updates the stored credential from configuration and environment, or generates a password at the first start (contract 2). A changed
 * password ends all logins. If only a hash comparison can find a change, `compare` does it later.
 */
export async function ensureCredential(db: Database, loaded: LoadedConfig, clock: Clock): Promise<Operator> {
  const { username, password_hash: configuredHash } = loaded.config.auth;
  const stored = await findCredential(db);
  const now = clock.now();
  const isCompared = configuredHash === "" && loaded.password !== "" && stored?.username === username &&
    stored.source === "environment";
  const wanted = isCompared ? null : await buildCredential(stored, username, configuredHash, loaded.password);
  if (wanted === null) {
    const id = await ensureOperator(db, username, now);
    const compare = (stopping: AbortSignal) => comparePassword(db, loaded.password, { clock, stopping });
    return { id, credential: stored as Credential, generated: null, compare: isCompared ? compare : null };
  }
  const { generated, ...rest } = wanted;
  const changed = stored !== null && stored.password_hash !== rest.password_hash;
  const credential = { username, ...rest, version: (stored?.version ?? 1) + (changed ? 1 : 0) };
  const id = await ensureOperator(db, username, now, [
    ...storeCredential(credential, now),
    ...(changed ? [deleteRefreshTokens(), record(now, { kind: "auth.password_changed" })] : []),
  ]);
  return { id, credential, generated, compare: null };
}

// Logins wait until the new password is stored. If storing it fails, for example because the disk is full, the old password must stay
// invalid.
async function comparePassword(
  db: Database,
  password: string,
  { clock, stopping }: { clock: Clock; stopping: AbortSignal },
): Promise<number> {
  for (let attempt = 1;; attempt++) {
    try {
      return await storeIfChanged(db, password, clock);
    } catch (error) {
      if (stopping.aborted) throw error;
      log.error(
        "Cannot store the password of SVC_AUTH_PASSWORD: {error}. Logins with a password wait for it.",
        {
          error,
        },
      );
      await sleep(clock, backoffMs(COMPARE_BACKOFF, attempt), stopping);
    }
  }
}

async function storeIfChanged(db: Database, password: string, clock: Clock): Promise<number> {
  const stored = await findCredential(db);
  if (stored === null) throw new Error("there is no credential");
  if (await verifyPassword(password, stored.password_hash)) return stored.version;
  const hash = await hashPassword(password, CHOSEN_COST);
  const now = clock.now();
  await db.writeOr([
    ...changePassword({ hash, source: "environment" }, stored.version, now),
    deleteRefreshTokens(),
    record(now, { kind: "auth.password_changed" }),
  ], () => new Error("the stored password was changed meanwhile"));
  return stored.version + 1;
}

/**
 * Updates the operator's row and its credential in one batch, so that a refused name changes nothing. The operator is a user like others,
 * but the configuration sets its name and password (contract 9).
 */
async function ensureOperator(
  db: Database,
  username: string,
  now: number,
  credential: Statement[] = [],
): Promise<string> {
  const known = await findOperator(db);
  const isKnown = known !== null && known.name === username;
  if (isKnown && credential.length === 0) return known.id;
  const same = isKnown ? null : await findUserByName(db, username);
  const replaced = same?.origin === "operator" ? null : same;
  try {
    await db.write([
      ...credential,
      ...(isKnown ? [] : storeOperator(createId(), username, now)),
      ...(replaced === null ? [] : [
        endLogins(replaced.id),
        record(now, { kind: "user.deleted", data: { user_id: replaced.id, name: replaced.name } }),
      ]),
    ]);
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    throw new ConfigError(
      `auth.username: another user has a name that looks like ${
        JSON.stringify(username)
      }. Set another name, or rename that user.`,
    );
  }
  if (replaced !== null) {
    log.warning("Deleted the user {name} with its logins and tokens: auth.username is now its name.", {
      name: replaced.name,
    });
  }
  const saved = await findOperator(db);
  if (saved === null) throw new Error("the operator is not among the users");
  return saved.id;
}

/** Builds the credential to store, or null without a change. */
async function buildCredential(
  stored: Credential | null,
  username: string,
  configuredHash: string,
  password: string,
): Promise<{ password_hash: string; source: Credential["source"]; generated: string | null } | null> {
  if (configuredHash !== "") {
    if (stored?.password_hash === configuredHash && stored.username === username) return null;
    return { password_hash: configuredHash, source: "config", generated: null };
  }
  if (password !== "") {
    const same = stored !== null && stored.username === username &&
      await verifyPassword(password, stored.password_hash);
    const hash = same ? stored.password_hash : await hashPassword(password, CHOSEN_COST);
    return { password_hash: hash, source: "environment", generated: null };
  }
  if (stored === null) {
    const generated = generatePassword();
    return { password_hash: await hashPassword(generated, GENERATED_COST), source: "generated", generated };
  }
  if (stored.username === username) return null;
  return { password_hash: stored.password_hash, source: stored.source, generated: null };
}
