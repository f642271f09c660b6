import { normalizeName } from "../../domain/call/name_key.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { type Token, tokenSchema } from "../../domain/account/token.ts";
import type { Role } from "../../domain/call/vocabulary.ts";
import { type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { matchAny, matchReference, type Where } from "../db/filter.ts";
import { list } from "../db/list.ts";
import { buildJsonSql } from "../db/json_projection.ts";

/** A token with its owner, to authorize a request. */
export interface TokenGrant extends Omit<Token, "scopes" | "created_at"> {
  /** JSON list. */
  scopes: string;
  role: Role;
  disabled: number;
}

const TOKEN_JSON = buildJsonSql("token", tokenSchema, { user_name: "user.name" });

const FROM = "token join user on user.id = token.user_id";

/** Finds the token with its owner, or null. */
export function findTokenGrant(db: Database, id: string): Promise<TokenGrant | null> {
  return db.first<TokenGrant>(
    `select token.id, token.name, token.scopes, token.expires_at, token.last_used_at,
      token.user_id, user.name as user_name, user.role, user.disabled
    from ${FROM}
    where token.id = ?`,
    [id],
  );
}

/** Returns the scopes of the token with this name; none if it was deleted. */
export async function findTokenScopes(db: Database, name: string): Promise<string[]> {
  const row = await db.first<{ scopes: string }>("select scopes from token where name = ?", [name]);
  return row === null ? [] : JSON.parse(row.scopes) as string[];
}

/** Lists tokens, newest first, of these users or with null of all. */
export function listTokens(
  db: Database,
  userIds: readonly string[] | null,
  { ref, ...page }: Page & { ref?: string | undefined },
): Promise<Listing<Token>> {
  const where: Where = { conditions: [], args: [] };
  if (ref !== undefined) matchReference("token", { column: "name_key", key: normalizeName })(where, ref);
  if (userIds !== null) matchAny("token.user_id")(where, userIds);
  return list(db, { table: "token", from: FROM, json: TOKEN_JSON, where }, page);
}

/** Stores a new token. Guarded: the owner must be enabled and have fewer than `max` tokens. A duplicate name fails the batch. */
export function insertToken(token: Token, max: number): Statement[] {
  const { id, user_id, name, expires_at, created_at } = token;
  const scopes = JSON.stringify(token.scopes);
  return insertGuarded(
    "token",
    { id, user_id, name, name_key: normalizeName(name), scopes, expires_at, created_at },
    {
      sql: `(select count(*) from token where user_id = ?) < ?
        and exists (select 1 from user where id = ? and disabled = 0)`,
      args: [user_id, max, user_id],
    },
  );
}

/** Revokes a token, guarded by its existence. */
export function deleteToken(id: string): Statement[] {
  return guard("delete from token where id = ?", [id]);
}

export function recordTokenUse(id: string, now: number): Statement {
  return { sql: "update token set last_used_at = ? where id = ?", args: [now, id] };
}
