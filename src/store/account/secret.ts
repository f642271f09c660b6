import { buildSet, type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { COUNT_MAX, type Page } from "../../domain/call/page.ts";
import type { SealedSecret } from "./secret_cipher.ts";
import { SECRETS_MAX, SECRETS_TOTAL_MAX_BYTES } from "../../domain/account/secret.ts";

export interface SecretRow extends SealedSecret {
  name: string;
  created_at: number;
  updated_at: number;
  last_used_at: number | null;
}

const COLUMNS = "name, key_id, sealed, created_at, updated_at, last_used_at";

export function findSecret(db: Database, name: string): Promise<SecretRow | null> {
  return db.first<SecretRow>(`select ${COLUMNS} from secret where name = ?`, [name]);
}

/** Lists every secret, by name. At most SECRETS_MAX exist. */
export function listAllSecrets(db: Database): Promise<SecretRow[]> {
  return db.read<SecretRow>(`select ${COLUMNS} from secret order by name limit ?`, [SECRETS_MAX + 1]);
}

/** Lists the names of secrets that another key encrypted. */
export async function listLostSecrets(db: Database, keyId: string): Promise<string[]> {
  const rows = await db.read<{ name: string }>(
    "select name from secret where key_id <> ? order by name limit ?",
    [keyId, SECRETS_MAX],
  );
  return rows.map(({ name }) => name);
}

/** Lists a page of secrets by name. `next` is the cursor of the next page. */
export async function listSecrets(
  db: Database,
  { cursor = "", page, page_size: size }: Page,
): Promise<{ rows: Omit<SecretRow, "sealed">[]; total: number; next: string | null }> {
  const offset = cursor === "" ? (page - 1) * size : 0;
  const rows = await db.read<Omit<SecretRow, "sealed">>(
    `select name, key_id, created_at, updated_at, last_used_at
    from secret
    where name > ?
    order by name
    limit ? offset ?`,
    // An extra row shows whether there is a next page.
    [cursor, size + 1, offset],
  );
  const counting = "select count(*) as total from (select 1 from secret limit ?)";
  const total = await db.readValue<number>(counting, [COUNT_MAX + 1]) ?? 0;
  const shown = rows.slice(0, size);
  return { rows: shown, total, next: rows.length > size ? shown.at(-1)?.name ?? null : null };
}

/** Lists the workers that may use each of these secrets. */
export function listSecretGrants(
  db: Database,
  names: readonly string[],
): Promise<{ name: string; worker_id: string }[]> {
  return db.read<{ name: string; worker_id: string }>(
    `select secret_name as name, worker_id
    from secret_worker
    where secret_name in (select value from json_each(?))
    order by secret_name, worker_id`,
    [JSON.stringify(names)],
  );
}

/** Returns which of these secrets a worker may use. */
export async function listGrantedSecrets(
  db: Database,
  workerId: string,
  names: readonly string[],
): Promise<Set<string>> {
  const rows = await db.read<{ name: string }>(
    `select secret_name as name
    from secret_worker
    where worker_id = ? and secret_name in (select value from json_each(?))`,
    [workerId, JSON.stringify(names)],
  );
  return new Set(rows.map(({ name }) => name));
}

/** Stores a new secret, guarded by the limits of number and total size. A duplicate name fails the batch. */
export function insertSecret(name: string, { key_id, sealed }: SealedSecret, now: number): Statement[] {
  return insertGuarded(
    "secret",
    { name, key_id, sealed, created_at: now, updated_at: now },
    {
      sql: `(select count(*) from secret) < ? and ${FITS}`,
      args: [SECRETS_MAX, ...buildFitsArgs(name, sealed)],
    },
  );
}

const FITS = "(select coalesce(sum(octet_length(sealed)), 0) from secret where name <> ?) + ? <= ?";

function buildFitsArgs(name: string, sealed: string): (string | number)[] {
  return [name, sealed.length, SECRETS_TOTAL_MAX_BYTES];
}

/** Changes a secret, guarded by its existence and, with a new value, by the limit of the total size. */
export function updateSecret(name: string, sealed: SealedSecret | null, now: number): Statement[] {
  const { sql, args } = buildSet({ ...sealed, updated_at: now });
  const fits = sealed === null ? [] : buildFitsArgs(name, sealed.sealed);
  return guard(
    `update secret set ${sql} where name = ?${sealed === null ? "" : ` and ${FITS}`}`,
    [...args, name, ...fits],
  );
}

/** Encrypts a secret with another key, guarded by its current ciphertext. */
export function resealSecret({ name, sealed: before }: SecretRow, after: SealedSecret): Statement[] {
  return guard("update secret set key_id = ?, sealed = ? where name = ? and sealed = ?", [
    after.key_id,
    after.sealed,
    name,
    before,
  ]);
}

/** Replaces the workers that may use a secret. */
export function replaceGrants(name: string, workerIds: readonly string[]): Statement[] {
  return [
    { sql: "delete from secret_worker where secret_name = ?", args: [name] },
    {
      sql: "insert into secret_worker (secret_name, worker_id) select ?, value from json_each(?)",
      args: [name, JSON.stringify([...new Set(workerIds)])],
    },
  ];
}

/** Lets a worker use a secret. */
export function grantSecret(name: string, workerId: string): Statement {
  return {
    sql: "insert into secret_worker (secret_name, worker_id) values (?, ?) on conflict do nothing",
    args: [name, workerId],
  };
}

/** Deletes a secret with its grants, guarded by its existence. */
export function deleteSecret(name: string): Statement[] {
  return guard("delete from secret where name = ?", [name]);
}

export function recordSecretUse(name: string, now: number): Statement {
  return { sql: "update secret set last_used_at = ? where name = ?", args: [now, name] };
}
