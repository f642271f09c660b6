import { invalid } from "../../domain/call/error.ts";
import type { Person } from "../../domain/call/scope.ts";
import { findUserById } from "../../store/account/user.ts";
import { checked, networkOf } from "./password_check.ts";
import type { Call } from "../call/call.ts";
import { operatorCredential } from "./operator_credential.ts";
import { byName } from "../call/login_limit.ts";
import type { Deps } from "../call/services.ts";
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
  needs: Deps<"db" | "auth" | "authority" | "loginLimits">,
  call: Call,
  { password, address }: Proof,
): Promise<void> {
  const { person } = call.caller;
  if (password === undefined || person === null) {
    throw invalid("password", "is needed: the password of who asks for this");
  }
  const isRight = await limited(needs, {
    name: `confirm\n${person.userId}`,
    address,
    check: (network) => matches(needs, person, password, network),
    detail: "Cannot check the password: too many wrong ones; wait for the next minute",
  });
  if (!isRight) throw invalid("password", "is wrong, or you have none here");
}

/**
 * Checks the password that somebody, called `name`, says is theirs before it is changed. It is limited like a login. Throws
 * `invalid_request` naming the field, and `rate_limited`.
 */
export async function checkCurrent(
  needs: Deps<"auth" | "loginLimits">,
  hash: string,
  { name, password, address }: Proof & { name: string },
): Promise<void> {
  if (password === undefined) throw invalid("current_password", "is needed with a token from a login");
  const isRight = await limited(needs, {
    name: `change\n${name}`,
    address,
    check: (network) => verifyPassword(password, hash, network),
    detail: "Cannot change the password: too many wrong ones; wait for the next minute",
  });
  if (!isRight) throw invalid("current_password", "is wrong");
}

interface Limited {
  /** What is checked, and whose. */
  name: string;
  address: string;
  check: (network: string) => Promise<boolean>;
  /** What is said when too many were wrong. */
  detail: string;
}

async function limited(
  { auth, loginLimits }: Deps<"auth" | "loginLimits">,
  { name, address, check, detail }: Limited,
): Promise<boolean> {
  const network = networkOf(address);
  const counted = byName(name, network, auth.login_failures_per_minute);
  const attempt = await loginLimits.begin(counted, detail);
  const isRight = await checked(attempt, check(network));
  if (!isRight) await attempt.fail();
  else {
    attempt.takeBack();
    loginLimits.clear(counted[0].who);
  }
  return isRight;
}

// Whoever signs in with an OpenID provider has no password here, and nothing matches.
async function matches(
  needs: Deps<"db" | "authority">,
  { userId }: Person,
  password: string,
  network: string,
): Promise<boolean> {
  const user = await findUserById(needs.db, userId);
  const isOperator = user?.origin === "operator";
  const hash = isOperator ? (await operatorCredential(needs))?.password_hash : user?.password_hash;
  return await verifyPassword(password, hash ?? "", network);
}
