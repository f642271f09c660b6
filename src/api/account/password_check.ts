import { createHash, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../../domain/call/error.ts";
import { nameKey } from "../../domain/call/name.ts";
import { operatorCredential } from "./operator_credential.ts";
import { record } from "../../store/events/journal.ts";
import { findAnyHash, findUserByName } from "../../store/account/user.ts";
import { type LoggedIn, loggedIn, operatorLoggedIn } from "./session_identity.ts";
import { type Attempt, byName } from "../call/login_limit.ts";
import { verifyPassword } from "./password.ts";
import type { Deps } from "../call/services.ts";

/**
 * Checks the name and password of POST /api/auth/login. Throws `rate_limited`, or `invalid_credentials` with one text
 * for a wrong name, a wrong password and a disabled user.
 */
export async function checkPassword(
  deps: Deps<"db" | "clock" | "auth" | "authority" | "loginLimits">,
  { username, password }: { username: string; password: string },
  address: string,
): Promise<LoggedIn> {
  const { db, clock, auth, authority, loginLimits } = deps;
  const network = networkOf(address);
  const counted = byName(nameKey(username), network, auth.login_failures_per_minute);
  const attempt = await loginLimits.begin(counted, "Cannot log in: too many failed logins. Wait a minute.");
  const { hash, who } = await checked(attempt, findCandidate({ db, authority }, username));
  // A wrong name costs the same hash as a right one, so the response time reveals no names.
  const matches = await checked(attempt, verifyPassword(password, hash, network));
  if (who === null || !matches) {
    await attempt.fail();
    await db.write([record(clock.now(), { kind: "auth.refused", actor: "system", data: { address } })]);
    throw new ServiceError("invalid_credentials", "Cannot log in: wrong username or password");
  }
  attempt.takeBack();
  loginLimits.clear(counted[0].who);
  return who;
}

// The user with this name and the hash to compare with. The configuration wins over the table (contract 9).
async function findCandidate(
  { db, authority }: Deps<"db" | "authority">,
  username: string,
): Promise<{ hash: string; who: LoggedIn | null }> {
  // Runs for every name, so that the response time does not reveal the operator's name.
  const credential = await operatorCredential({ db, authority });
  const [user, other] = await Promise.all([findUserByName(db, username), findAnyHash(db)]);
  if (credential !== null && isSameText(username, credential.username)) {
    return { hash: credential.password_hash, who: operatorLoggedIn(credential.username, credential.version) };
  }
  if (user !== null && user.password_hash !== "" && user.origin === "local") {
    return { hash: user.password_hash, who: user.disabled === 1 ? null : loggedIn(user) };
  }
  return { hash: other ?? credential?.password_hash ?? "", who: null };
}

/** Awaits a password check. When the check throws, for example because the queue is full, the attempt is not counted. */
export async function checked<T>(attempt: Attempt, check: Promise<T>): Promise<T> {
  try {
    return await check;
  } catch (error) {
    attempt.takeBack();
    throw error;
  }
}

/**
 * Parses the network that login attempts are counted by. One client may own a whole IPv6 network, so a count per
 * address would never reach its limit.
 */
export function networkOf(address: string): string {
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
