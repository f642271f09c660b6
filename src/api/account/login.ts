import type { SignInDeps } from "./sign_in.ts";
import { randomBytes } from "node:crypto";
import { digest } from "../../base/bytes.ts";
import { createId } from "../../base/id.ts";
import { setOriginActor } from "../../base/origin.ts";
import { signToken } from "../../base/token.ts";
import { ServiceError } from "../../domain/call/error.ts";
import type { AccessToken, ConsoleCode, Login, LoginInput, Whoami } from "../../domain/account/login.ts";
import {
  deleteRefreshToken,
  findRefreshToken,
  insertRefreshToken,
  type RefreshToken,
} from "../../store/account/credential.ts";
import { record } from "../../store/events/journal.ts";
import { findUserById, recordLogin } from "../../store/account/user.ts";
import { type Answer, answer, NOTHING } from "../call/answer.ts";
import {
  buildOperatorIdentity,
  buildUserIdentity,
  checkPassword,
  type LoginIdentity,
} from "./password_check.ts";
import type { Deps } from "../call/services.ts";
import { type LoginKind, ROLES } from "../../domain/call/vocabulary.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import type { Call } from "../call/call.ts";
import { CODE_LIFE_S, type CodeGrant } from "./one_time_codes.ts";

type LoginDeps = Deps<"db" | "clock" | "auth" | "authority">;

/** A login in a browser: the secret has two halves, and one of them goes into a cookie. */
export interface BrowserLogin extends AccessToken {
  session: string;
  cookie: string;
  /** Lifetime of both halves in seconds. */
  lasts_s: number;
}

interface LoginOptions {
  address: string;
  /** How long the login can be refreshed, in ms. */
  lastsMs: number;
  /** How the user logged in, for the journal. */
  by: "password" | "oidc" | "code";
}

const SECRET_BYTES = 32;

/** Opens a login whose secret the client program keeps. */
async function openLogin(deps: LoginDeps, who: LoginIdentity, options: LoginOptions): Promise<Login> {
  const refreshToken = randomBytes(SECRET_BYTES).toString("base64url");
  const loginId = await storeLogin(deps, who, { ...options, secret: refreshToken, kind: "login" });
  return { ...await issueAccessToken(deps, who, loginId), refresh_token: refreshToken };
}

/** Opens a login in a browser. Neither half of its secret works alone (contract 9). */
async function openBrowserLogin(
  deps: LoginDeps,
  who: LoginIdentity,
  options: LoginOptions,
): Promise<BrowserLogin> {
  const [cookie, session] = [randomBytes(SECRET_BYTES), randomBytes(SECRET_BYTES)].map((half) =>
    half.toString("base64url")
  );
  if (cookie === undefined || session === undefined) throw new Error("there are two halves");
  const secret = joinHalves(cookie, session);
  const loginId = await storeLogin(deps, who, { ...options, secret, kind: "browser" });
  const lasts_s = Math.floor(options.lastsMs / 1000);
  return { ...await issueAccessToken(deps, who, loginId), cookie, session, lasts_s };
}

/** Stores a login and returns its id. */
async function storeLogin(
  { db, clock, authority }: LoginDeps,
  who: LoginIdentity,
  options: LoginOptions & { secret: string; kind: LoginKind },
): Promise<string> {
  const now = clock.now();
  const id = createId();
  setOriginActor(`user:${who.name}`);
  await db.write([
    insertRefreshToken({
      id,
      token_hash: digest(options.secret),
      username: who.name,
      user_id: who.userId,
      version: who.version,
      kind: options.kind,
      expires_at: now + options.lastsMs,
    }, now),
    recordLogin(who.userId || authority.operatorId, now),
    record(now, {
      kind: "auth.login",
      actor: `user:${who.name}`,
      data: { address: options.address, by: options.by },
    }),
  ]);
  return id;
}

export function joinHalves(cookie: string, session: string): string {
  return `${cookie}.${session}`;
}

/** Creates an access token, but no new refresh token (interface 5.4). Throws `unauthenticated`. */
export async function refresh(
  deps: LoginDeps,
  secret: string,
  kind: LoginKind,
): Promise<Answer<AccessToken>> {
  const stored = await findRefreshToken(deps.db, digest(secret), deps.clock.now());
  const who = stored?.kind === kind ? await findHolder(deps, stored) : null;
  if (stored !== null && who !== null) return answer(await issueAccessToken(deps, who, stored.id));
  throw new ServiceError(
    "unauthenticated",
    "Cannot refresh: the refresh token is unknown, expired or revoked. Log in again.",
  );
}

// A changed password and a disabled or deleted user end the login.
async function findHolder(
  { db, authority }: Deps<"db" | "authority">,
  { user_id, version }: Pick<RefreshToken, "user_id" | "version">,
): Promise<LoginIdentity | null> {
  if (user_id === "") {
    return version === await authority.getOperatorVersion()
      ? buildOperatorIdentity(authority.username, version)
      : null;
  }
  const user = await findUserById(db, user_id);
  if (user === null || user.disabled === 1) return null;
  return user.version === version ? buildUserIdentity(user) : null;
}

/** Ends a login. An unknown login is no error and leaves no trace. */
export async function logout(
  { db, clock }: Deps<"db" | "clock">,
  secret: string,
  kind: LoginKind,
): Promise<Answer<undefined>> {
  const hash = digest(secret);
  const stored = await findRefreshToken(db, hash, clock.now());
  if (stored === null || stored.kind !== kind) return NOTHING;
  setOriginActor(`user:${stored.username}`);
  await db.write([
    deleteRefreshToken(hash),
    record(clock.now(), { kind: "auth.logout", actor: `user:${stored.username}` }),
  ]);
  return NOTHING;
}

// The token has the version of the password that was checked. If the password changes during the login, the token is
// already invalid.
async function issueAccessToken(
  { authority, clock, auth }: LoginDeps,
  who: LoginIdentity,
  loginId: string,
): Promise<AccessToken> {
  const ttl = Math.floor(auth.access_ttl / 1000);
  const claims = {
    typ: "access" as const,
    sub: `user:${who.userId || authority.operatorId}`,
    scope: who.scopes.join(" "),
    name: who.name,
    ver: who.version,
    login: loginId,
  };
  const token = await signToken(authority.key, claims, ttl, clock.now());
  return { access_token: token, expires_in: ttl, token_type: "Bearer" };
}

interface LoginFrom {
  address: string;
  /** The cookie of this browser's OpenID sign-in. */
  flow: string | null;
  /** Secret of the browser's current login, or null. */
  existing: string | null;
}

/**
 * Logs in with name and password, or logs in a browser with a code. Throws `invalid_credentials`, `rate_limited`, or `conflict` when a code
 * would silently replace another user's login.
 */
export async function logIn(
  deps: Deps<"db" | "clock" | "auth" | "authority" | "loginLimits"> & SignInDeps,
  input: LoginInput,
  { address, flow, existing }: LoginFrom,
): Promise<Login | BrowserLogin> {
  if ("code" in input) {
    const binding = await deps.signIn.oidc?.findFlowId(flow) ?? "";
    if (existing !== null && !input.replace) await checkReplacement(deps, existing, { ...input, binding });
    const { who, grant: { by, lastsMs } } = await takeCode(deps, input.code, binding);
    return await openBrowserLogin(deps, who, { address, by, lastsMs });
  }
  const who = await checkPassword(deps, input, address);
  const options = { address, by: "password" as const, lastsMs: deps.auth.refresh_ttl };
  return input.browser ? await openBrowserLogin(deps, who, options) : await openLogin(deps, who, options);
}

// Any page can link to a code of the page's author. Without this check, a click on the link would replace the reader's session (contract-3
// 20.9).
async function checkReplacement(
  deps: Deps<"db" | "clock" | "authority"> & SignInDeps,
  existing: string,
  { code, binding }: { code: string; binding: string },
): Promise<void> {
  const [current, next] = await Promise.all([
    findRefreshToken(deps.db, digest(existing), deps.clock.now()),
    findCodeHolder(deps, deps.signIn.codes.find(code, binding)),
  ]);
  const holder = current === null ? null : await findHolder(deps, current);
  if (holder === null || next === null || holder.userId === next.userId) return;
  throw new ServiceError(
    "conflict",
    `Cannot log in with this code: it logs in ${
      JSON.stringify(next.name)
    }, and this browser is logged in as ${JSON.stringify(holder.name)}. Confirm to replace the login.`,
    { errors: [{ path: "code", message: `signs in ${next.name}` }] },
  );
}

/** Reads the settings for cookies and origin checks. */
export function getCookieScope({ signIn }: SignInDeps): CookieScope {
  return { publicUrl: signIn.publicUrl(), cookieSuffix: signIn.cookieSuffix };
}

export interface CookieScope {
  publicUrl: string;
  cookieSuffix: string;
}

/** Returns the caller and the caller's scopes. */
export function describeCaller(_needs: Deps<never>, { caller }: Call): Promise<Answer<Whoami>> {
  const { subject, person, scopes } = caller;
  // A token has no role, because it may have fewer scopes than its owner.
  const role = person === null || person.by === "token"
    ? undefined
    : ROLES.find((one) => ROLE_SCOPES[one].join(" ") === scopes.join(" "));
  return Promise.resolve(answer({
    subject,
    user_id: person?.userId ?? null,
    name: person?.name ?? subject,
    role: role ?? null,
    scopes: [...scopes],
    by: person?.by ?? "run",
  }));
}

/** Creates a code that logs one browser in as the caller, once, within a minute. Throws `forbidden` for tokens. */
export async function createCode(
  { db, authority, signIn, auth }: Deps<"db" | "authority" | "auth"> & SignInDeps,
  call: Call,
): Promise<Answer<ConsoleCode>> {
  const { person } = call.caller;
  if (person === null || person.by === "token") {
    throw new ServiceError(
      "forbidden",
      "Cannot open the console with a token: only a login can. Run `svc ctl login`.",
    );
  }
  const isOperator = person.userId === authority.operatorId;
  const user = isOperator ? null : await findUserById(db, person.userId);
  const code = signIn.codes.issue({
    userId: isOperator ? "" : person.userId,
    version: user?.version ?? await authority.getOperatorVersion(),
    by: "code",
    lastsMs: auth.refresh_ttl,
    binding: "",
  });
  return answer({ code, expires_in: CODE_LIFE_S, url: signIn.publicUrl() });
}

/** Uses up a code and returns who logs in with it. Throws `invalid_credentials`. */
async function takeCode(
  deps: Deps<"authority" | "db"> & SignInDeps,
  code: string,
  binding: string,
): Promise<{ who: LoginIdentity; grant: CodeGrant }> {
  const grant = deps.signIn.codes.take(code, binding);
  const who = await findCodeHolder(deps, grant);
  if (grant !== null && who !== null) return { who, grant };
  throw new ServiceError(
    "invalid_credentials",
    "Cannot log in with this code: it was used, is older than a minute, or belongs to another browser. Get a new code.",
  );
}

async function findCodeHolder(
  deps: Deps<"authority" | "db">,
  grant: CodeGrant | null,
): Promise<LoginIdentity | null> {
  return grant === null ? null : await findHolder(deps, { user_id: grant.userId, version: grant.version });
}
