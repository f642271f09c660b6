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
 * POST /api/auth/login: who has this name and password (contract 2, contract 9). Throws
 * `invalid_credentials`, one text for wrong name, wrong password and disabled user, and `rate_limited`.
 */
export async function checkPassword(
  needs: Deps<"db" | "clock" | "auth" | "authority" | "loginLimits">,
  { username, password }: { username: string; password: string },
  address: string,
): Promise<LoggedIn> {
  const { db, clock, auth, authority, loginLimits } = needs;
  const network = networkOf(address);
  const counted = byName(nameKey(username), network, auth.login_failures_per_minute);
  const attempt = await loginLimits.begin(
    counted,
    "Cannot log in: too many failed logins; wait for the next minute",
  );
  const { hash, who } = await checked(attempt, candidateOf({ db, authority }, username));
  // A wrong name costs the same hash as a right one (reliability AUT-3).
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

// Whom the name means, and the hash that the password has to have. The configuration wins over the table (contract 9).
async function candidateOf(
  { db, authority }: Deps<"db" | "authority">,
  username: string,
): Promise<{ hash: string; who: LoggedIn | null }> {
  // For every name, so that the time does not tell the operator's from others.
  const credential = await operatorCredential({ db, authority });
  const [user, other] = await Promise.all([
    findUserByName(db, username),
    findAnyHash(db),
  ]);
  if (credential !== null && sameText(username, credential.username)) {
    return { hash: credential.password_hash, who: operatorLoggedIn(credential.username, credential.version) };
  }
  if (user !== null && user.password_hash !== "" && user.origin === "local") {
    return { hash: user.password_hash, who: user.disabled === 1 ? null : loggedIn(user) };
  }
  return { hash: other ?? credential?.password_hash ?? "", who: null };
}

/** What came of checking a password. Where it was not checked at all, because too many wait, the try counts nowhere. */
export async function checked<T>(attempt: Attempt, check: Promise<T>): Promise<T> {
  try {
    return await check;
  } catch (error) {
    attempt.takeBack();
    throw error;
  }
}

/**
 * The network of an address, by which attempts are counted: who has one IPv6 address has a whole network of them, so a count
 * by single address would never reach its limit (reliability AUT-4).
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

function sameText(a: string, b: string): boolean {
  return timingSafeEqual(createHash("sha256").update(a).digest(), createHash("sha256").update(b).digest());
}
