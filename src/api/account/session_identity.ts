import { ALL_SCOPES } from "../../domain/call/scope.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import type { UserRow } from "../../store/account/user.ts";

/** Who logged in: the operator by the version of the credential, others by their own. */
export interface LoggedIn {
  /** "" for the operator. */
  userId: string;
  name: string;
  version: number;
  scopes: readonly string[];
}

/** A user as somebody who logs in. */
export function loggedIn(user: UserRow): LoggedIn {
  return { userId: user.id, name: user.name, version: user.version, scopes: ROLE_SCOPES[user.role] };
}

/** The operator of the configuration as somebody who logs in. */
export function operatorLoggedIn(name: string, version: number): LoggedIn {
  return { userId: "", name, version, scopes: ALL_SCOPES };
}
