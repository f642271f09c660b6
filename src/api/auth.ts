import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { digest } from "../base/digest.ts";
import { ServiceError } from "../domain/error.ts";
import { ALL_SCOPES } from "../domain/scope.ts";
import type { AccessToken, Login } from "../domain/login.ts";
import { newId } from "../base/id.ts";
import {
  deleteRefreshToken,
  findCredential,
  findRefreshToken,
  insertRefreshToken,
} from "../store/credential.ts";
import { record } from "../store/journal.ts";
import { signToken } from "../base/token.ts";
import { type Attempt, NETWORK_SHARE } from "./login_limit.ts";
import { verifyPassword } from "./password.ts";
import { type Answer, answer, NOTHING } from "./answer.ts";
import type { Needs } from "./parts.ts";

const REFRESH_TOKEN_BYTES = 32;

/** POST /api/auth/login. Throws `invalid_credentials`, one text for wrong name and wrong password, and `rate_limited` (contract 2.3). */
export async function login(
  needs: Needs<"db" | "clock" | "auth" | "authority" | "loginLimits">,
  { username, password }: { username: string; password: string },
  address: string,
): Promise<Answer<Login>> {
  const { db, clock, auth, loginLimits } = needs;
  const now = clock.now();
  const network = networkOf(address);
  const who = digest(`${network}\n${username}`);
  const max = auth.login_failures_per_minute;
  const attempt = await loginLimits.begin(
    [{ who, max }, { who: digest(network), max: max * NETWORK_SHARE }],
    "Cannot log in: too many failed logins; wait for the next minute",
  );
  const credential = await findCredential(db);
  // A wrong name takes as long as a right one (reliability AUT-3).
  const matches = await checked(attempt, verifyPassword(password, credential?.password_hash ?? "", network));
  if (credential === null || !matches || !sameText(username, credential.username)) {
    await attempt.fail();
    await db.write([record(now, { kind: "auth.refused", actor: "system", data: { address } })]);
    throw new ServiceError("invalid_credentials", "Cannot log in: wrong username or password");
  }
  attempt.takeBack();
  loginLimits.clear(who);
  const refreshToken = randomBytes(REFRESH_TOKEN_BYTES).toString("base64url");
  const subject = `operator:${credential.username}`;
  await db.write([
    insertRefreshToken({
      id: newId(),
      token_hash: digest(refreshToken),
      username: credential.username,
      version: credential.version,
      expires_at: now + auth.refresh_ttl,
    }, now),
    record(now, { kind: "auth.login", actor: subject, data: { address } }),
  ]);
  const access = await accessToken(needs, subject, credential.version);
  return answer({ ...access, refresh_token: refreshToken });
}

/** Whether a password is right. When it was not checked at all, because too many wait, the attempt does not count. */
export async function checked(attempt: Attempt, check: Promise<boolean>): Promise<boolean> {
  try {
    return await check;
  } catch (error) {
    attempt.takeBack();
    throw error;
  }
}

/** POST /api/auth/refresh: a new access token and no new refresh token (interface 5.4). Throws `unauthenticated`. */
export async function refresh(
  needs: Needs<"db" | "clock" | "auth" | "authority">,
  refreshToken: string,
): Promise<Answer<AccessToken>> {
  const { db, clock, authority } = needs;
  const stored = await findRefreshToken(db, digest(refreshToken), clock.now());
  if (stored === null || stored.version !== authority.version) {
    throw new ServiceError(
      "unauthenticated",
      "Cannot refresh: the refresh token is unknown, expired or revoked; log in",
    );
  }
  return answer(await accessToken(needs, `operator:${stored.username}`, stored.version));
}

/** POST /api/auth/logout: revokes the refresh token (contract 2.2). An unknown one is no error and is not recorded. */
export async function logout(
  { db, clock }: Needs<"db" | "clock">,
  refreshToken: string,
): Promise<Answer<undefined>> {
  const hash = digest(refreshToken);
  const stored = await findRefreshToken(db, hash, clock.now());
  if (stored === null) return NOTHING;
  await db.write([
    deleteRefreshToken(hash),
    record(clock.now(), { kind: "auth.logout", actor: `operator:${stored.username}` }),
  ]);
  return NOTHING;
}

// `version` is that of the password that was checked: if the password changes meanwhile, this token must not be good for
// the new one.
async function accessToken(
  { authority, clock, auth }: Needs<"authority" | "clock" | "auth">,
  subject: string,
  version: number,
): Promise<AccessToken> {
  const ttl = Math.floor(auth.access_ttl / 1000);
  const claims = {
    typ: "access" as const,
    sub: subject,
    scope: ALL_SCOPES.join(" "),
    ver: version,
  };
  const token = await signToken(authority.key, claims, ttl, clock.now());
  return { access_token: token, expires_in: ttl, token_type: "Bearer" };
}

// Whoever has one IPv6 address has a whole network of them, so a count by single address would never reach its limit.
function networkOf(address: string): string {
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
