import type { LoginKind, PasswordSource } from "../../domain/call/vocabulary.ts";
import { type Database, guard, insertRow, type Statement } from "../db/database.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";

export interface Credential {
  username: string;
  password_hash: string;
  source: PasswordSource;
  version: number;
}

/** Finds the credential, null before the first start. */
export function findCredential(db: Database): Promise<Credential | null> {
  return db.first<Credential>("select username, password_hash, source, version from credential limit 1");
}

/** Replaces the credential. The caller decides whether to increase the version. */
export function storeCredential(credential: Credential, now: number): Statement[] {
  return [
    { sql: "delete from credential", args: [] },
    insertRow("credential", { ...credential, updated_at: now }),
  ];
}

/** Changes the operator's password, guarded by the version. All older tokens become invalid. */
export function changePassword(
  { hash, source }: { hash: string; source: PasswordSource },
  version: number,
  now: number,
): Statement[] {
  return guard(
    `update credential
    set password_hash = ?, source = ?, version = version + 1, updated_at = ?
    where version = ?`,
    [hash, source, now, version],
  );
}

/** Invalidates every token without changing the password. */
export function revokeAllLogins(now: number): Statement[] {
  return [
    { sql: "update credential set version = version + 1, updated_at = ?", args: [now] },
    { sql: "delete from refresh_token", args: [] },
  ];
}

/** A stored refresh token. Only its hash is stored. */
export interface RefreshToken {
  id: string;
  username: string;
  /** "" for the operator. */
  user_id: string;
  kind: LoginKind;
  version: number;
  expires_at: number;
}

export function insertRefreshToken(token: RefreshToken & { token_hash: string }, now: number): Statement {
  return insertRow("refresh_token", { ...token, created_at: now });
}

export function findRefreshToken(db: Database, tokenHash: string, now: number): Promise<RefreshToken | null> {
  return db.first<RefreshToken>(
    `select id, username, user_id, kind, version, expires_at
    from refresh_token
    where token_hash = ? and expires_at > ?`,
    [tokenHash, now],
  );
}

export function deleteRefreshToken(tokenHash: string): Statement {
  return { sql: "delete from refresh_token where token_hash = ?", args: [tokenHash] };
}

/** Revokes the operator's refresh tokens after a change of the password. */
export function deleteRefreshTokens(): Statement {
  return { sql: "delete from refresh_token where user_id = ''", args: [] };
}

/** Failed logins of `who` during a minute (Unix time in minutes). */
interface LoginFailures {
  who: string;
  minute: number;
  count: number;
}

/** Lists the failed logins of this minute. Those of later minutes do not count, because the clock may have been ahead. */
export function listLoginFailures(
  db: Database,
  minute: number,
): Promise<{ who: string; failures: number }[]> {
  return db.read("select who, failures from login_failure where minute = ?", [minute]);
}

export function storeLoginFailures(failures: readonly LoginFailures[]): Statement[] {
  return [
    { sql: "delete from login_failure", args: [] },
    {
      sql: `insert into login_failure (who, minute, failures)
        select value ->> 'who', value ->> 'minute', value ->> 'count' from json_each(?)`,
      args: [JSON.stringify(failures)],
    },
  ];
}

/** Revokes everything that the signing key has signed, guarded by no open run, because runs hold such tokens (contract 8.16). */
export function revokeAllSignatures(now: number): Statement[] {
  return [
    ...guard(
      `update credential
      set updated_at = ?
      where not exists (select 1 from execution where status ${EXECUTION_IS_OPEN})
        and not exists (select 1 from bee_run where status = 'running')`,
      [now],
    ),
    ...revokeAllLogins(now),
    { sql: "update user set version = version + 1, updated_at = ?", args: [now] },
    { sql: "delete from token", args: [] },
  ];
}
