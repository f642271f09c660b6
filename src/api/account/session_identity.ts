import { ALL_SCOPES } from "../../domain/call/scope.ts";
import { ROLE_SCOPES } from "../../domain/account/user.ts";
import type { UserRow } from "../../store/account/user.ts";

/** A user who logged in, with the version of the password. */
export interface LoggedIn {
  /** "" for the operator. */
  userId: string;
  name: string;
  version: number;
  scopes: readonly string[];
}

export function loggedIn(user: UserRow): LoggedIn {
  return { userId: user.id, name: user.name, version: user.version, scopes: ROLE_SCOPES[user.role] };
}

export function operatorLoggedIn(name: string, version: number): LoggedIn {
  return { userId: "", name, version, scopes: ALL_SCOPES };
}
