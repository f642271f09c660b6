import { createId } from "../../base/id.ts";
import { conflict, notFound, ServiceError } from "../../domain/call/error.ts";
import { formatJson, parseJson } from "../../domain/call/json.ts";
import {
  canManageRole,
  type CreatedUser,
  type User,
  type UserCreate,
  type UserFilter,
  type UserPassword,
  USERS_MAX,
  type UserUpdate,
} from "../../domain/account/user.ts";
import type { Role } from "../../domain/call/vocabulary.ts";
import { type Database, isDuplicate } from "../../store/db/database.ts";
import {
  changeUserPassword,
  deleteUser as deleteUserRow,
  findUser,
  findUserByName,
  insertUser,
  listUsers as listUserRows,
  toUser,
  updateUser as updateUserRow,
  type UserRow,
} from "../../store/account/user.ts";
import { createOnce, type Creation } from "../call/idempotency.ts";
import { CHOSEN_COST, generatePassword, hashPassword } from "./password.ts";
import { type Answer, answer, answerPage, DELETED, requireFound } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkCurrentPassword } from "./password_check.ts";

type UserChangeDeps = Deps<"db" | "clock" | "authority">;

export async function listUsers({ db }: Deps<"db">, filter: UserFilter): Promise<Answer<User[]>> {
  return answerPage(await listUserRows(db, filter, filter));
}

export async function getUser({ db }: Deps<"db">, idOrName: string): Promise<Answer<User>> {
  return answer(toUser(await requireUser(db, idOrName)));
}

/**
 * Creates a user. Without a password the service generates one and shows it in this answer only; a repeated request
 * does not get it again. Throws `forbidden` for a role above the caller's, and `conflict` for a taken name.
 */
export async function createUser(
  deps: Deps<"db" | "clock">,
  call: Call,
  input: UserCreate,
): Promise<Answer<CreatedUser>> {
  checkReach(call, input.role, "make");
  const generated = input.password === undefined ? generatePassword() : null;
  const password = input.password ?? generated ?? "";
  const created = await createOnce(deps, call, () => planUser(deps, call, input, password));
  if (generated === null || created.replayed) return created;
  return { ...created, json: formatJson({ ...parseJson(created.json), password: generated }) };
}

async function planUser(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  { name, role }: UserCreate,
  password: string,
): Promise<Creation<CreatedUser>> {
  const now = clock.now();
  const row: UserRow = {
    id: createId(),
    name,
    role,
    disabled: 0,
    // Every hash has the same cost, so the login time reveals no users (reliability AUT-3).
    password_hash: await hashPassword(password, CHOSEN_COST),
    version: 1,
    origin: "local",
    issuer: "",
    subject: "",
    created_at: now,
    updated_at: now,
    last_login_at: null,
  };
  return {
    statements: [
      ...insertUser(row, USERS_MAX),
      recordBy(call, now, { kind: "user.created", data: { user_id: row.id, name, role } }),
    ],
    response: toUser(row),
    lost: () => conflict(`Cannot create the user: ${USERS_MAX} users exist. Delete some first.`),
    duplicate: () => explainTakenName(db, name),
  };
}

/**
 * Updates a user. The change takes effect within a second, also for open connections. Throws `not_found`, `forbidden`
 * for a role above the caller's, and `conflict` for a taken name, the operator and the last admin.
 */
export async function updateUser(
  { db, clock, authority }: UserChangeDeps,
  call: Call,
  idOrName: string,
  input: UserUpdate,
): Promise<Answer<User>> {
  const user = await requireUser(db, idOrName);
  checkReach(call, user.role, "change");
  if (input.role !== undefined) checkReach(call, input.role, "make");
  const changes = input.name !== undefined && input.name !== user.name ||
    input.role !== undefined && input.role !== user.role || input.disabled === true;
  if (user.origin === "operator" && changes) throw buildOperatorError(user.name, "change");
  const now = clock.now();
  const { name, role, disabled } = input;
  try {
    await db.writeOr([
      ...updateUserRow(user.id, { name, role, disabled }, now),
      recordBy(call, now, {
        kind: "user.updated",
        data: {
          user_id: user.id,
          name: name ?? user.name,
          role: role ?? user.role,
          disabled: disabled ?? user.disabled === 1,
        },
      }),
    ], () => explainLostUser(db, user, "change"));
  } catch (error) {
    throw isDuplicate(error) ? await explainTakenName(db, name ?? user.name) : error;
  }
  authority.forget();
  return await getUser({ db }, user.id);
}

/** Deletes a user. Throws `not_found`, `forbidden`, and `conflict` for the operator and the last admin. */
export async function deleteUser({ db, clock, authority }: UserChangeDeps, call: Call, idOrName: string) {
  const user = await requireUser(db, idOrName);
  checkReach(call, user.role, "delete");
  if (user.origin === "operator") throw buildOperatorError(user.name, "delete");
  await db.writeOr([
    ...deleteUserRow(user.id),
    recordBy(call, clock.now(), { kind: "user.deleted", data: { user_id: user.id, name: user.name } }),
  ], () => explainLostUser(db, user, "delete"));
  authority.forget();
  return DELETED;
}

/**
 * Sets a user's password and ends the logins of that user. The caller's own change needs the current password, another
 * user's needs `write:users`. Throws `not_found`, `forbidden`, `conflict`, `invalid_request` or `rate_limited`.
 */
export async function setPassword(
  deps: Deps<"db" | "clock" | "authority" | "auth" | "loginLimits">,
  call: Call,
  idOrName: string,
  input: UserPassword & { address: string },
): Promise<Answer<User>> {
  const { db, clock, authority } = deps;
  const { person, scopes } = call.caller;
  const found = await findUser(db, idOrName);
  const own = person !== null && person.by !== "token" && found?.id === person.userId;
  // A caller without access to users must not learn which exist, so this check is first.
  if (!own && !canManageRole(scopes, "admin") && !scopes.some((one) => /^(write|\*):(users|\*)$/.test(one))) {
    throw new ServiceError(
      "forbidden",
      "Cannot change another user's password: the token lacks the scope write:users",
      { required_scope: "write:users" },
    );
  }
  if (found === null) throw notFound("user", idOrName);
  if (!own) checkReach(call, found.role, "change the password of");
  if (found.origin === "operator") {
    throw conflict(
      "Cannot change the operator's password here: PUT /api/system/password does it, as does svc ctl system password",
    );
  }
  if (found.origin === "oidc") {
    throw conflict(
      `Cannot change the password of ${
        JSON.stringify(found.name)
      }: it signs in with the OpenID provider and has none here`,
    );
  }
  if (own) {
    const given = { name: found.id, password: input.current_password, address: input.address };
    await checkCurrentPassword(deps, found.password_hash, given);
  }
  const hash = await hashPassword(input.password, CHOSEN_COST);
  const now = clock.now();
  await db.writeOr([
    ...changeUserPassword(found, hash, now),
    recordBy(call, now, { kind: "user.password_changed", data: { user_id: found.id, name: found.name } }),
  ], () => conflict("Cannot change the password: another request changed it first. Try again."));
  authority.forget();
  return await getUser(deps, found.id);
}

async function requireUser(db: Database, idOrName: string): Promise<UserRow> {
  return requireFound(await findUser(db, idOrName), "user", idOrName);
}

// A token with write:users alone must not create an admin or take one over.
function checkReach(call: Call, role: Role, action: string): void {
  if (canManageRole(call.caller.scopes, role)) return;
  throw new ServiceError(
    "forbidden",
    `Cannot ${action} a user with the role ${role}: the role has more scopes than this token`,
  );
}

function buildOperatorError(name: string, action: string): ServiceError {
  return conflict(
    `Cannot ${action} the user ${
      JSON.stringify(name)
    }: it is the operator of the configuration and stays an admin; ` +
      "its name is auth.username there",
  );
}

async function explainLostUser(db: Database, user: UserRow, action: string): Promise<ServiceError> {
  const row = await findUser(db, user.id);
  if (row === null) return notFound("user", user.id);
  return conflict(
    `Cannot ${action} the user ${
      JSON.stringify(user.name)
    }: it is the last admin. Make another user an admin first.`,
  );
}

async function explainTakenName(db: Database, name: string): Promise<ServiceError> {
  const reason = await findUserByName(db, name) === null
    ? "it looks like the name of another user. Choose a name that people can tell apart"
    : "another user has this name. Case is ignored";
  return conflict(`Cannot name a user ${JSON.stringify(name)}: ${reason}.`);
}
