import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { digest } from "../base/digest.ts";
import { ServiceError } from "../domain/error.ts";
import { ALL_SCOPES } from "../domain/scope.ts";
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
import type { Service } from "./service.ts";

/** Answer of POST /api/auth/login (contract 2). `expires_in` is in seconds. */
export interface Login {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  token_type: "Bearer";
}

const REFRESH_TOKEN_BYTES = 32;

/** POST /api/auth/login. Throws `invalid_credentials`, one text for wrong name and wrong password, and `rate_limited`. */
export async function login(
  service: Service,
  username: string,
  password: string,
  address: string,
): Promise<Login> {
  const { db, clock, config, loginLimits } = service;
  const now = clock.now();
  const network = networkOf(address);
  const who = digest(`${network}\n${username}`);
  const max = config.auth.login_failures_per_minute;
  const attempt = await loginLimits.begin(
    [{ who, max }, { who: digest(network), max: max * NETWORK_SHARE }],
    "Cannot log in: too many failed logins; wait for the next minute",
  );
  const credential = await findCredential(db);
  // A wrong name costs the same hash as a right one (reliability AUT-3).
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
      expires_at: now + config.auth.refresh_ttl,
    }, now),
    record(now, { kind: "auth.login", actor: subject, data: { address } }),
  ]);
  const access = await accessToken(service, subject, credential.version);
  return { ...access, refresh_token: refreshToken, token_type: "Bearer" };
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

/** POST /api/auth/refresh: a new access token and no new refresh token (interface 5.4). Throws `unauthenticated`. */
export async function refresh(
  service: Service,
  refreshToken: string,
): Promise<{ access_token: string; expires_in: number; token_type: "Bearer" }> {
  const stored = await findRefreshToken(service.db, digest(refreshToken), service.clock.now());
  if (stored === null || stored.version !== service.authority.version) {
    throw new ServiceError(
      "unauthenticated",
      "Cannot refresh: the refresh token is unknown, expired or revoked; log in",
    );
  }
  const access = await accessToken(service, `operator:${stored.username}`, stored.version);
  return { ...access, token_type: "Bearer" };
}

/** POST /api/auth/logout: the refresh token is invalid from now on. An unknown one is not an error and leaves no trace. */
export async function logout(service: Service, refreshToken: string): Promise<void> {
  const { db, clock } = service;
  const hash = digest(refreshToken);
  const stored = await findRefreshToken(db, hash, clock.now());
  if (stored === null) return;
  await db.write([
    deleteRefreshToken(hash),
    record(clock.now(), { kind: "auth.logout", actor: `operator:${stored.username}` }),
  ]);
}

// Of the password's version that was checked: one that is changed meanwhile must not make this a token of the new one.
async function accessToken(
  service: Service,
  subject: string,
  version: number,
): Promise<{ access_token: string; expires_in: number }> {
  const { authority, clock, config } = service;
  const ttl = Math.floor(config.auth.access_ttl / 1000);
  const claims = {
    typ: "access" as const,
    sub: subject,
    scope: ALL_SCOPES.join(" "),
    ver: version,
  };
  return { access_token: await signToken(authority.key, claims, ttl, clock.now()), expires_in: ttl };
}

// Whoever has one IPv6 address has a network of them: by the single address no count would ever be reached.
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
