import { createId } from "../../base/id.ts";
import { signNamedToken } from "../../base/token.ts";
import { conflict, invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import type { DeleteResult } from "../../domain/call/deleted.ts";
import { formatJson, parseJson } from "../../domain/call/json.ts";
import { type Caller, grants, type Person } from "../../domain/call/scope.ts";
import {
  type CreatedToken,
  findExcessScope,
  type Token,
  TOKEN_LIFE_MS,
  type TokenCreate,
  type TokenFilter,
  TOKENS_PER_USER_MAX,
} from "../../domain/account/token.ts";
import {
  deleteToken as deleteTokenRow,
  findTokenGrant,
  insertToken,
  listTokens as listTokenRows,
} from "../../store/account/token.ts";
import { findUser } from "../../store/account/user.ts";
import { createOnce, type Creation } from "../call/idempotency.ts";
import { type Answer, answerPage, DELETED } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** Lists the caller's tokens, and all users' tokens with `write:tokens`. An unknown user in the filter matches no token. */
export async function listTokens({ db }: Deps<"db">, call: Call, filter: TokenFilter) {
  const person = requirePerson(call.caller);
  const all = seesAll(call.caller);
  if (filter.user === undefined) {
    return answerPage(await listTokenRows(db, all ? null : [person.userId], filter));
  }
  const owners = await Promise.all([...new Set(filter.user)].map((user) => findUser(db, user)));
  const ids = owners.filter((owner) => owner !== null && (owner.id === person.userId || all))
    .map((owner) => owner?.id ?? "");
  return answerPage(await listTokenRows(db, ids.length === 0 ? [""] : ids, filter));
}

/**
 * Creates a token with at most the caller's scopes. The answer shows its text, which is stored nowhere; a repeated
 * request gets the same text. Throws `invalid_request`, `forbidden`, or `conflict` for a taken name.
 */
export async function createToken(
  { db, clock, authority }: Deps<"db" | "clock" | "authority">,
  call: Call,
  input: TokenCreate,
): Promise<Answer<CreatedToken>> {
  const { userId, name: userName } = requirePerson(call.caller);
  const now = clock.now();
  const expiresAt = input.expires_at === undefined ? now + TOKEN_LIFE_MS : input.expires_at;
  if (expiresAt !== null && expiresAt <= now) {
    throw invalid("expires_at", "must be in the future, or null for no expiry");
  }
  const more = findExcessScope(input.scopes, call.caller.scopes);
  if (more !== undefined) {
    throw new ServiceError(
      "forbidden",
      `Cannot give a token the scope ${more}: you do not hold it yourself`,
      { required_scope: more },
    );
  }
  const token: Token = {
    id: createId(),
    name: input.name,
    user_id: userId,
    user_name: userName,
    scopes: input.scopes,
    expires_at: expiresAt,
    created_at: now,
    last_used_at: null,
  };
  const creation: Creation<Token> = {
    statements: [
      ...insertToken(token, TOKENS_PER_USER_MAX),
      recordBy(call, now, {
        kind: "token.created",
        data: {
          token_id: token.id,
          name: token.name,
          user_id: userId,
          scopes: token.scopes,
          expires_at: expiresAt,
        },
      }),
    ],
    response: token,
    lost: () =>
      conflict(
        `Cannot create the token: this user has ${TOKENS_PER_USER_MAX} tokens or is disabled. Delete some tokens first.`,
      ),
    duplicate: () =>
      conflict(
        `Cannot name a token ${JSON.stringify(input.name)}: another token has this name. Case is ignored.`,
      ),
  };
  const created = await createOnce({ db, clock }, call, () => creation);
  const stored = parseJson(created.json);
  return { ...created, json: formatJson({ ...stored, token: await signNamedToken(authority.key, stored) }) };
}

/** Revokes a token immediately. Throws `not_found`, also for another user's token without `write:tokens`. */
export async function deleteToken(
  { db, clock, authority }: Deps<"db" | "clock" | "authority">,
  call: Call,
  id: string,
): Promise<Answer<DeleteResult>> {
  const person = requirePerson(call.caller);
  const token = await findTokenGrant(db, id);
  if (token === null || !seesAll(call.caller) && token.user_id !== person.userId) throw notFound("token", id);
  await db.writeOr([
    ...deleteTokenRow(id),
    recordBy(call, clock.now(), {
      kind: "token.deleted",
      data: { token_id: id, name: token.name, user_id: token.user_id },
    }),
  ], () => notFound("token", id));
  authority.forget();
  return DELETED;
}

function seesAll(caller: Caller): boolean {
  return grants(caller.scopes, "write:tokens");
}

function requirePerson({ person }: Caller): Person {
  if (person === null) throw new ServiceError("forbidden", "Cannot use tokens: only people can have them");
  return person;
}
