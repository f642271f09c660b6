import { invalid } from "../../domain/call/error.ts";
import type { Person } from "../../domain/call/scope.ts";
import { findUserById } from "../../store/account/user.ts";
import { checked, networkOf } from "./password_check.ts";
import type { Call } from "../call/call.ts";
import { operatorCredential } from "./operator_credential.ts";
import { byName } from "../call/login_limit.ts";
import type { Deps } from "../call/services.ts";
import { verifyPassword } from "./password.ts";

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

/**
 * Checks the current password of user `name` before a change. Limits attempts like a login. Throws `invalid_request`
 * with the field, or `rate_limited`.
 */
export async function checkCurrent(
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

interface LimitedCheck {
  /** The check and the user, as a key. */
  name: string;
  address: string;
  check: (network: string) => Promise<boolean>;
  /** The error text after too many wrong passwords. */
  detail: string;
}

async function runLimited(
  { auth, loginLimits }: Deps<"auth" | "loginLimits">,
  { name, address, check, detail }: LimitedCheck,
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

// Users of an OpenID provider have no password here, so no password matches.
async function matchesPassword(
  deps: Deps<"db" | "authority">,
  { userId }: Person,
  password: string,
  network: string,
): Promise<boolean> {
  const user = await findUserById(deps.db, userId);
  const isOperator = user?.origin === "operator";
  const hash = isOperator ? (await operatorCredential(deps))?.password_hash : user?.password_hash;
  return await verifyPassword(password, hash ?? "", network);
}
