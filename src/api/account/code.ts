import type { SignInDeps } from "./sign_in.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { findUserById } from "../../store/account/user.ts";
import { type LoggedIn, loggedIn, operatorLoggedIn } from "./session_identity.ts";
import { CODE_LIFE_S, type CodeGrant } from "./one_time_codes.ts";
import type { Call } from "../call/call.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { ConsoleCode } from "../../domain/account/login.ts";
import type { Deps } from "../call/services.ts";

/**
 * Creates a code for POST /api/auth/console. The code logs one browser in as the caller, once, within a minute. Throws
 * `forbidden` for tokens, which hold fewer scopes than a login.
 */
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
    version: user?.version ?? await authority.operatorVersion(),
    by: "code",
    lastsMs: auth.refresh_ttl,
    binding: "",
  });
  return answer({ code, expires_in: CODE_LIFE_S, url: signIn.publicUrl() });
}

/** Uses up a code and returns who logs in with it. Throws `invalid_credentials`. */
export async function takeCode(
  { authority, db, signIn }: Deps<"authority" | "db"> & SignInDeps,
  code: string,
  binding: string,
): Promise<{ who: LoggedIn; grant: CodeGrant }> {
  const grant = signIn.codes.take(code, binding);
  const who = grant === null ? null : await findHolder(grant);
  if (grant !== null && who !== null) return { who, grant };
  throw new ServiceError(
    "invalid_credentials",
    "Cannot log in with this code: it was used, is older than a minute, or belongs to another browser. Get a new code.",
  );

  async function findHolder({ userId, version }: CodeGrant): Promise<LoggedIn | null> {
    if (userId === "") {
      return version === await authority.operatorVersion()
        ? operatorLoggedIn(authority.username, version)
        : null;
    }
    const user = await findUserById(db, userId);
    return user === null || user.disabled === 1 || user.version !== version ? null : loggedIn(user);
  }
}
