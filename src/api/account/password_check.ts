import { createHash, timingSafeEqual } from "node:crypto";
import { invalid, ServiceError } from "../../domain/call/error.ts";
import { normalizeName } from "../../domain/call/name_key.ts";
import { record } from "../../store/events/journal.ts";
import { findAnyHash, findUserById, findUserByName, type UserRow } from "../../store/account/user.ts";
import { limitByName } from "../call/login_limit.ts";
import { verifyPassword } from "./password.ts";
import type { Deps } from "../call/services.ts";
import { type Credential, findCredential } from "../../store/account/credential.ts";
import { ALL_SCOPES, type Person } from "../../domain/call/scope.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import type { Call } from "../call/call.ts";

/**
 * Checks the name and password of POST /api/auth/login. Throws `rate_limited`, or `invalid_credentials` with one text
 * for a wrong name, a wrong password and a disabled user.
 */
export async function checkPassword(
  deps: Deps<"db" | "clock" | "auth" | "authority" | "loginLimits">,
  { username, password }: { username: string; password: string },
  address: string,
): Promise<LoginIdentity> {
  const who = await runLimited(deps, {
    name: normalizeName(username),
    address,
    check: async (network) => {
      const candidate = await findCandidate(deps, username);
      // A wrong name costs the same hash as a right one, so the response time reveals no names.
      const isRight = await verifyPassword(password, candidate.hash, network);
      return isRight && candidate.who;
    },
    detail: "Cannot log in: too many failed logins. Wait a minute.",
  });
  if (who) return who;
  await deps.db.write([
    record(deps.clock.now(), { kind: "auth.refused", actor: "system", data: { address } }),
  ]);
  throw new ServiceError("invalid_credentials", "Cannot log in: wrong username or password");
}

// The user with this name and the hash to compare with. The configuration wins over the table (contract 9).
async function findCandidate(
  { db, authority }: Deps<"db" | "authority">,
  username: string,
): Promise<{ hash: string; who: LoginIdentity | null }> {
  // Runs for every name, so that the response time does not reveal the operator's name.
  const credential = await findOperatorCredential({ db, authority });
  const [user, other] = await Promise.all([findUserByName(db, username), findAnyHash(db)]);
  if (credential !== null && isSameText(username, credential.username)) {
    return {
      hash: credential.password_hash,
      who: buildOperatorIdentity(credential.username, credential.version),
    };
  }
  if (user !== null && user.password_hash !== "" && user.origin === "local") {
    return { hash: user.password_hash, who: user.disabled === 1 ? null : buildUserIdentity(user) };
  }
  return { hash: other ?? credential?.password_hash ?? "", who: null };
}

/** Returns the network for which attempts are counted, because a client may own all addresses of an IPv6 network. */
export function findNetwork(address: string): string {
  if (!address.includes(":") || /^::ffff:[\d.]+$/i.test(address)) return address;
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const groups = (text: string) => text === "" ? [] : text.split(":");
  const missing = tail === undefined ? 0 : 8 - groups(head).length - groups(tail).length;
  const all = [
    ...groups(head),
    ...Array.from({ length: Math.max(0, missing) }, () => "0"),
    ...groups(tail ?? ""),
  ];
  return all.slice(0, IPV6_NETWORK_GROUPS).map((group) => parseInt(group, 16).toString(16)).join(":");
}

const IPV6_NETWORK_GROUPS = 4;

function isSameText(a: string, b: string): boolean {
  return timingSafeEqual(createHash("sha256").update(a).digest(), createHash("sha256").update(b).digest());
}

/** Waits until this start's password is stored, and finds it. Throws `unavailable` like getOperatorVersion(). */
export async function findOperatorCredential(
  { db, authority }: Deps<"db" | "authority">,
): Promise<Credential | null> {
  await authority.getOperatorVersion();
  return await findCredential(db);
}

/** A user who logged in, with the version of the password. */
export interface LoginIdentity {
  /** "" for the operator. */
  userId: string;
  name: string;
  version: number;
  scopes: readonly string[];
}

export function buildUserIdentity(user: UserRow): LoginIdentity {
  return { userId: user.id, name: user.name, version: user.version, scopes: ROLE_SCOPES[user.role] };
}

export function buildOperatorIdentity(name: string, version: number): LoginIdentity {
  return { userId: "", name, version, scopes: ALL_SCOPES };
}

/** The password that came with a request, and the address that sent it. */
interface Proof {
  password: string | undefined;
  address: string;
}

/**
 * Checks the caller's password before an action that a stolen token alone must not allow (contract 8.16). Limits
 * attempts like a login. Throws `invalid_request` with the field, or `rate_limited`.
 */
export async function confirmPassword(
  deps: Deps<"db" | "auth" | "authority" | "loginLimits">,
  call: Call,
  { password, address }: Proof,
): Promise<void> {
  const { person } = call.caller;
  if (password === undefined || person === null) {
    throw invalid("password", "is required: your own password");
  }
  const isRight = await runLimited(deps, {
    name: `confirm\n${person.userId}`,
    address,
    check: (network) => matchesPassword(deps, person, password, network),
    detail: "Cannot check the password: too many wrong passwords. Wait a minute.",
  });
  if (!isRight) throw invalid("password", "is wrong, or your user has no password here");
}

/** Checks the current password of user `name`, limited like a login. Throws `invalid_request`, `rate_limited`. */
export async function checkCurrentPassword(
  deps: Deps<"auth" | "loginLimits">,
  hash: string,
  { name, password, address }: Proof & { name: string },
): Promise<void> {
  if (password === undefined) throw invalid("current_password", "is required with a token from a login");
  const isRight = await runLimited(deps, {
    name: `change\n${name}`,
    address,
    check: (network) => verifyPassword(password, hash, network),
    detail: "Cannot change the password: too many wrong passwords. Wait a minute.",
  });
  if (!isRight) throw invalid("current_password", "is wrong");
}

interface LimitedCheck<T> {
  /** The check and the user, as a key. */
  name: string;
  address: string;
  /** Returns a falsy value for a failed check. */
  check: (network: string) => Promise<T>;
  /** The error text after too many failed checks. */
  detail: string;
}

// A check that throws, for example because too many passwords wait, does not count as an attempt.
async function runLimited<T>(
  { auth, loginLimits }: Deps<"auth" | "loginLimits">,
  { name, address, check, detail }: LimitedCheck<T>,
): Promise<T> {
  const network = findNetwork(address);
  const counted = limitByName(name, network, auth.login_failures_per_minute);
  const attempt = await loginLimits.startAttempt(counted, detail);
  const result = await check(network).catch((error) => {
    attempt.takeBack();
    throw error;
  });
  if (!result) await attempt.fail();
  else {
    attempt.takeBack();
    loginLimits.clear(counted[0].who);
  }
  return result;
}

// Users of an OpenID provider have no password here, so no password matches.
async function matchesPassword(
  deps: Deps<"db" | "authority">,
  { userId }: Person,
  password: string,
  network: string,
): Promise<boolean> {
  const user = await findUserById(deps.db, userId);
  const isOperator = user?.origin === "operator";
  const hash = isOperator ? (await findOperatorCredential(deps))?.password_hash : user?.password_hash;
  return await verifyPassword(password, hash ?? "", network);
}
