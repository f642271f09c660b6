import { buildLookKey, normalizeName } from "../../domain/call/name_key.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { type User, type UserFilter, userSchema, type UserUpdate } from "../../domain/account/user.ts";
import type { Role } from "../../domain/call/vocabulary.ts";
import { buildSet, type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { buildWhere, type Filters, matchAny, matchReference } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { buildJsonSql } from "../db/json_projection.ts";

export interface UserRow extends Omit<User, "disabled"> {
  disabled: number;
  /** Hash of the password, or "" for users without a local password. */
  password_hash: string;
  version: number;
  issuer: string;
  subject: string;
}

const COLUMNS =
  "id, name, role, disabled, password_hash, version, origin, issuer, subject, created_at, updated_at, last_login_at";

const USER_JSON = buildJsonSql("user", userSchema);

const USER_FILTERS: Filters<UserFilter> = {
  ref: matchReference("user", { column: "name_key", key: normalizeName }),
  role: matchAny("user.role"),
};

export function toUser(row: UserRow): User {
  const { id, name, role, origin, created_at, updated_at, last_login_at } = row;
  return { id, name, role, disabled: row.disabled === 1, origin, created_at, updated_at, last_login_at };
}

/** Finds a user by id, or else by name (contract 9). */
export function findUser(db: Database, idOrName: string): Promise<UserRow | null> {
  return db.first<UserRow>(
    `select ${COLUMNS} from user where id = ? or name_key = ? order by id = ? desc limit 1`,
    [idOrName, normalizeName(idOrName), idOrName],
  );
}

export function findUserById(db: Database, id: string): Promise<UserRow | null> {
  return db.first<UserRow>(`select ${COLUMNS} from user where id = ?`, [id]);
}

export function findUserByName(db: Database, name: string): Promise<UserRow | null> {
  return db.first<UserRow>(`select ${COLUMNS} from user where name_key = ?`, [normalizeName(name)]);
}

/** Finds the user of an OpenID identity, or null (contract 9). */
export function findUserBySubject(db: Database, issuer: string, subject: string): Promise<UserRow | null> {
  return db.first<UserRow>(
    `select ${COLUMNS} from user where issuer = ? and subject = ? and issuer <> ''`,
    [issuer, subject],
  );
}

/** Finds the configured operator, null before the first start. */
export function findOperator(db: Database): Promise<UserRow | null> {
  return db.first<UserRow>(`select ${COLUMNS} from user where origin = 'operator'`);
}

/** Returns any password hash. Logins with an unknown name check it to take as long as others (reliability AUT-3). */
export function findAnyHash(db: Database): Promise<string | null> {
  return db.readValue<string>("select password_hash from user where password_hash <> '' limit 1");
}

export function listUsers(db: Database, filter: UserFilter, page: Page): Promise<Listing<User>> {
  return list(db, { table: "user", json: USER_JSON, where: buildWhere(filter, USER_FILTERS) }, page);
}

/**
 * Stores a new user. Guarded: there must be fewer than `max` users. A duplicate or look-alike name, or a duplicate subject, fails the
 * batch.
 */
export function insertUser(user: UserRow, max: number): Statement[] {
  const row = { ...user, ...buildNameKeys(user.name) };
  return insertGuarded("user", row, { sql: "(select count(*) from user) < ?", args: [max] });
}

// Another admin who can log in has to remain (contract 9).
const NOT_THE_LAST = `exists (
      select 1 from user as other where other.id <> user.id and other.role = 'admin' and other.disabled = 0)`;

/**
 * Changes a user. Guarded: the user must exist, and an admin must remain. A duplicate or look-alike name fails the batch. Disabling a user
 * ends its logins and deletes its tokens, so that enabling restores none of them.
 */
export function updateUser(
  id: string,
  { name, role, disabled }: UserUpdate,
  now: number,
): Statement[] {
  const keys = name === undefined ? {} : buildNameKeys(name);
  const set = buildSet({ name, ...keys, role, disabled, updated_at: now });
  const keepsAdmin = disabled !== true && (role === undefined || role === "admin");
  const statements = guard(
    `update user
    set ${set.sql}${disabled === true ? ", version = version + 1" : ""}
    where id = ?${keepsAdmin ? "" : ` and (role <> 'admin' or disabled = 1 or ${NOT_THE_LAST})`}`,
    [...set.args, id],
  );
  if (disabled !== true) return statements;
  return [...statements, endLogins(id), { sql: "delete from token where user_id = ?", args: [id] }];
}

/** Changes a password, guarded by the version, and ends the user's older logins. */
export function changeUserPassword(user: UserRow, passwordHash: string, now: number): Statement[] {
  return [
    ...guard(
      `update user
      set password_hash = ?, version = version + 1, updated_at = ?
      where id = ? and version = ? and origin = 'local'`,
      [passwordHash, now, user.id, user.version],
    ),
    endLogins(user.id),
  ];
}

/** Deletes a user with its tokens and logins, guarded by its existence, and by an admin remaining. */
export function deleteUser(id: string): Statement[] {
  return [
    ...guard(
      `delete from user
      where id = ? and origin <> 'operator' and (role <> 'admin' or disabled = 1 or ${NOT_THE_LAST})`,
      [id],
    ),
    endLogins(id),
  ];
}

export function endLogins(userId: string): Statement {
  return { sql: "delete from refresh_token where user_id = ? and user_id <> ''", args: [userId] };
}

/** Stores a login, with the role from the identity provider if there is one. */
export function recordLogin(id: string, now: number, role?: Role): Statement {
  return role === undefined
    ? { sql: "update user set last_login_at = ? where id = ?", args: [now, id] }
    : { sql: "update user set last_login_at = ?, role = ? where id = ?", args: [now, role, id] };
}

function buildNameKeys(name: string): { name_key: string; look_key: string } {
  return { name_key: normalizeName(name), look_key: buildLookKey(name) };
}

/**
 * Updates the operator's row from the configuration. Deletes a user with the configured name. A user whose name
 * looks like it fails the batch.
 */
export function storeOperator(id: string, username: string, now: number): Statement[] {
  const { name_key, look_key } = buildNameKeys(username);
  return [
    // The user's row must not become the operator's: its logins and tokens would be the operator's, too.
    { sql: "delete from user where name_key = ? and origin <> 'operator'", args: [name_key] },
    {
      sql:
        "update user set name = ?, name_key = ?, look_key = ?, updated_at = ? where origin = 'operator' and name <> ?",
      args: [username, name_key, look_key, now, username],
    },
    {
      sql: `insert into user (id, name, name_key, look_key, role, origin, created_at, updated_at)
        select ?, ?, ?, ?, 'admin', 'operator', ?, ?
        where not exists (select 1 from user where origin = 'operator')`,
      args: [id, username, name_key, look_key, now, now],
    },
  ];
}
