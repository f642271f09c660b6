import type { SignInDeps } from "./sign_in.ts";
import { createId } from "../../base/id.ts";
import { conflict, ServiceError } from "../../domain/call/error.ts";
import { personName, USERS_MAX } from "../../domain/account/user.ts";
import { isDuplicate } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import { findUserBySubject, insertUser, recordLogin, type UserRow } from "../../store/account/user.ts";
import { findNetwork } from "./password_check.ts";
import { limitByNetwork } from "../call/login_limit.ts";
import { type Identity, OIDC_LOGIN_MS, type OidcSignIn } from "./oidc.ts";
import type { Deps } from "../call/services.ts";

/** The provider redirects the browser to this path. */
export const CALLBACK_PATH = "/api/auth/oidc/callback";

/** Returns the OpenID sign-in. Throws `not_found` when no provider is configured. */
function requireOidc({ signIn }: SignInDeps): OidcSignIn {
  if (signIn.oidc !== null) return signIn.oidc;
  throw new ServiceError(
    "not_found",
    "Cannot sign in with an OpenID provider: none is configured. Set auth.oidc, or log in with a name and a password.",
  );
}

/** Starts an OpenID sign-in. Throws `not_found` or `unavailable`. */
export async function startOidc(
  deps: SignInDeps,
  returnTo: string,
): Promise<{ location: string; cookie: string }> {
  const redirectUri = deps.signIn.publicUrl() + CALLBACK_PATH;
  const { url, cookie } = await requireOidc(deps).start(redirectUri, returnTo);
  return { location: url.href, cookie };
}

/**
 * Finishes an OpenID sign-in: finds or creates the user and returns the next URL. Its fragment contains a code that only
 * this browser can use, once. Limits failures like wrong passwords. Throws `forbidden`, `rate_limited`, `unavailable`,
 * or `conflict` when another user has the name.
 */
export async function finishOidc(
  deps: Deps<"db" | "clock" | "authority" | "auth" | "loginLimits"> & SignInDeps,
  search: string,
  cookie: string | null,
  address: string,
): Promise<string> {
  const { signIn, db, clock, authority } = deps;
  const { identity, flow } = await finishLimited(deps, search, cookie, address);
  const user = await findOrCreateUser(deps, identity);
  if (user.disabled === 1) throw new ServiceError("forbidden", "Cannot sign in: this user is disabled");
  if (user.role !== identity.role) {
    const now = clock.now();
    await db.write([
      recordLogin(user.id, now, identity.role),
      record(now, {
        kind: "user.updated",
        data: { user_id: user.id, name: user.name, role: identity.role, by: "oidc" },
      }),
    ]);
    authority.forget();
  }
  const grant = {
    userId: user.id,
    version: user.version,
    by: "oidc" as const,
    lastsMs: OIDC_LOGIN_MS,
    binding: flow.id,
  };
  const to = new URL(flow.returnTo, signIn.publicUrl());
  to.hash = `code=${signIn.codes.issue(grant)}`;
  return to.href;
}

// Any client can call this with any input: unknown sign-ins write nothing, and each network has a limit of failures.
async function finishLimited(
  deps: Deps<"db" | "clock" | "auth" | "loginLimits"> & SignInDeps,
  search: string,
  cookie: string | null,
  address: string,
): Promise<Awaited<ReturnType<OidcSignIn["finish"]>>> {
  const { signIn, db, clock, auth, loginLimits } = deps;
  const oidc = requireOidc(deps);
  const attempt = await loginLimits.startAttempt(
    [limitByNetwork(`oidc\n${findNetwork(address)}`, auth.login_failures_per_minute)],
    "Cannot sign in: too many failed logins. Wait a minute.",
  );
  try {
    const done = await oidc.finish(new URL(`${signIn.publicUrl()}${CALLBACK_PATH}${search}`), cookie);
    attempt.takeBack();
    return done;
  } catch (error) {
    await attempt.fail();
    if (await oidc.findFlowId(cookie) !== "") {
      const reason = error instanceof Error ? error.message : String(error);
      await db.write([record(clock.now(), { kind: "auth.refused", data: { by: "oidc", reason } })]);
    }
    throw error;
  }
}

// (issuer, subject) identifies the user even after a rename. An existing name is never taken over.
async function findOrCreateUser({ db, clock }: Deps<"db" | "clock">, identity: Identity): Promise<UserRow> {
  const { issuer, subject, role } = identity;
  const known = await findUserBySubject(db, issuer, subject);
  if (known !== null) return known;
  const parsed = personName.safeParse(identity.name);
  if (!parsed.success) {
    throw new ServiceError(
      "forbidden",
      "Cannot sign in: the name from the provider is not a valid name here",
    );
  }
  const name = parsed.data;
  const now = clock.now();
  const user: UserRow = {
    id: createId(),
    name,
    role,
    disabled: 0,
    password_hash: "",
    version: 1,
    origin: "oidc",
    issuer,
    subject,
    created_at: now,
    updated_at: now,
    last_login_at: null,
  };
  try {
    await db.writeOr([
      ...insertUser(user, USERS_MAX),
      record(now, { kind: "user.created", data: { user_id: user.id, name, role, by: "oidc" } }),
    ], () => conflict(`Cannot sign in: ${USERS_MAX} users exist. Ask an administrator.`));
    return user;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
    // Two simultaneous answers for one person create one user. An equal name is a conflict.
    const first = await findUserBySubject(db, issuer, subject);
    if (first !== null) return first;
    throw conflict(
      `Cannot sign in: a user called ${
        JSON.stringify(name)
      }, or with a name that looks like it, exists here and is not linked to you. ` +
        "Ask an administrator to rename one of the two users.",
    );
  }
}
