import { ServiceError } from "../domain/error.ts";
import { type Caller, grants } from "../domain/scope.ts";
import type { Access } from "./route.ts";

/** Throws `forbidden` naming the scope when the caller does not hold it (contract 2). Objects are checked in SQL. */
export function authorize(caller: Caller, access: Access): void {
  if (access === "public" || grants(caller.scopes, access)) return;
  throw new ServiceError("forbidden", `Cannot do this: the token lacks the scope ${access}`, {
    required_scope: access,
  });
}
