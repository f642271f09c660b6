import { digest } from "../base/digest.ts";
import { invalid } from "../domain/error.ts";
import type { Person } from "../domain/scope.ts";
import { findCredential } from "../store/credential.ts";
import { findUserById } from "../store/user.ts";
import type { Database } from "../store/database.ts";
import { checked, networkOf } from "./auth.ts";
import type { Call } from "./call.ts";
import { NETWORK_SHARE } from "./login_limit.ts";
import type { Needs } from "./parts.ts";
import { verifyPassword } from "./password.ts";

/** The password that came with a request, and from where. */
interface Proof {
  password: string | undefined;
  address: string;
}

/**
 * Checks the caller's own password for what must not be done with a stolen token alone (contract 8.16). It is limited like
 * a login. Throws `invalid_request` naming the field when it is missing or wrong, and `rate_limited`.
 */
export async function confirmPassword(
  { db, auth, loginLimits }: Needs<"db" | "auth" | "loginLimits">,
  call: Call,
  { password, address }: Proof,
): Promise<void> {
  const { person } = call.caller;
  if (password === undefined || person === null) {
    throw invalid("password", "is needed: the password of who asks for this");
  }
  const network = networkOf(address);
  const who = digest(`confirm\n${network}\n${person.userId}`);
  const max = auth.login_failures_per_minute;
  const attempt = await loginLimits.begin(
    [{ who, max }, { who: digest(network), max: max * NETWORK_SHARE }],
    "Cannot check the password: too many wrong ones; wait for the next minute",
  );
  if (!await checked(attempt, matches(db, person, password, network))) {
    await attempt.fail();
    throw invalid("password", "is wrong, or you have none here");
  }
  attempt.takeBack();
  loginLimits.clear(who);
}

// Whoever signs in with an OpenID provider has no password here, and nothing matches.
async function matches(
  db: Database,
  { userId }: Person,
  password: string,
  network: string,
): Promise<boolean> {
  const user = await findUserById(db, userId);
  const hash = user?.origin === "operator" ? (await findCredential(db))?.password_hash : user?.password_hash;
  return await verifyPassword(password, hash ?? "", network);
}
