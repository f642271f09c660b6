import type { Rule } from "../domain/call/access.ts";
import { ServiceError } from "../domain/call/error.ts";
import { type Caller, getBoundSessionKey, isClosedToRuns, mayCall } from "../domain/call/scope.ts";

/**
 * Throws `forbidden` with the missing scope when the rule of an operation excludes this caller (contract 2.6, contract 9). SQL checks which
 * objects the caller may see.
 */
export function authorize(caller: Caller, rule: Rule): void {
  if (isAuthorized(caller, rule)) return;
  throw new ServiceError(
    "forbidden",
    caller.runner !== undefined
      ? "Cannot do this with the token of a runner: it only allows claiming and reporting runs"
      : rule.only === "runners"
      ? "Cannot do this: only runners may. Use the token that `svc ctl runner add` prints."
      : rule.only === "runs"
      ? "Cannot do this: only the engine of a run may"
      : caller.run !== null && isForPeople(rule)
      ? "Cannot do this from a run: only people may, whatever scopes the worker has"
      : rule.only === "unbound" && getBoundSessionKey(caller) !== null
      ? "Cannot do this from a run: the run is bound to its conversation. Only a worker with the scope *:* may do this."
      : `Cannot do this: the token lacks the scope ${rule.access}`,
    rule.access === "token" ? {} : { required_scope: rule.access },
  );
}

/** Whether authorize() accepts this caller (contract 9). */
export function isAuthorized(caller: Caller, rule: Rule): boolean {
  const { access, only } = rule;
  if (access === "public") return true;
  if ((caller.runner !== undefined) !== (rule.only === "runners")) return false;
  if (caller.run !== null && isForPeople(rule)) return false;
  if (caller.run === null && rule.only === "runs") return false;
  if (rule.only === "unbound" && getBoundSessionKey(caller) !== null) return false;
  // With `own`, the operation checks the owner.
  const isLogin = caller.person !== null && caller.person.by !== "token";
  return access === "token" || only === "own" && isLogin || mayCall(caller, access);
}

function isForPeople({ access, only }: Rule): boolean {
  return only === "people" || only === "own" || isClosedToRuns(access);
}
