import type { Rule } from "../domain/call/access.ts";
import { ServiceError } from "../domain/call/error.ts";
import { boundTo, type Caller, closedToRuns, mayCall } from "../domain/call/scope.ts";

/**
 * Throws `forbidden` when the rule of an operation does not let this caller in, naming the scope that is missing
 * (contract 2.6, contract 9). Which objects the caller may see is checked in SQL.
 */
export function authorize(caller: Caller, rule: Rule): void {
  if (mayEnter(caller, rule)) return;
  throw new ServiceError(
    "forbidden",
    caller.runner !== undefined
      ? "Cannot do this with the token of a runner: it is good for claiming runs and reporting them, and for nothing else"
      : rule.only === "runners"
      ? "Cannot do this: it is for runners, with the token that svc ctl runner add prints"
      : caller.run !== null && isForPeople(rule)
      ? "Cannot do this from a run: it is for people, whatever scopes the worker has"
      : rule.only === "unbound" && boundTo(caller) !== null
      ? "Cannot do this from a run: it is bound to its conversation; only a worker with the scope *:* may"
      : `Cannot do this: the token lacks the scope ${rule.access}`,
    rule.access === "token" ? {} : { required_scope: rule.access },
  );
}

/** Whether authorize() lets this caller in (contract 9). */
export function mayEnter(caller: Caller, rule: Rule): boolean {
  const { access, only } = rule;
  if (access === "public") return true;
  if ((caller.runner !== undefined) !== (rule.only === "runners")) return false;
  if (caller.run !== null && isForPeople(rule)) return false;
  if (rule.only === "unbound" && boundTo(caller) !== null) return false;
  // Whose own it is, the operation itself looks at.
  const isLogin = caller.person !== null && caller.person.by !== "token";
  return access === "token" || only === "own" && isLogin || mayCall(caller, access);
}

function isForPeople({ access, only }: Rule): boolean {
  return only === "people" || only === "own" || closedToRuns(access);
}
