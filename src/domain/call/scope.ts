import { z } from "zod";
import type { RunKeys } from "./run_identity.ts";
import { type Resource, RESOURCES, type Scope, VERBS } from "./vocabulary.ts";

/** What no run reaches, whatever its scopes are (contract 9). */
const CLOSED_TO_RUNS: readonly Resource[] = [
  "users",
  "tokens",
  "platforms",
  "webhooks",
  "notices",
  "fleet",
  "runners",
  "runs",
];

/** What a run may read at most: changing these is for people (contract 9). */
const READ_ONLY_FOR_RUNS: readonly Resource[] = ["budgets", "engines", "commands"];

/** What `read:*` of a run stands for: the resources of the first part, and questions (contract 9). */
const READ_ALL_OF_RUNS: readonly Resource[] = [
  ...RESOURCES.slice(0, RESOURCES.indexOf("users")),
  "questions",
];

/** The syntax of a scope, `*` standing for all. A scope that no route asks for is stored and grants nothing. */
export const scope = z.string()
  .regex(/^[a-z*]+:[a-z*-]+$/, { error: "must look like <verb>:<resource>, for example read:workers" })
  .max(100);

/** Everything: what an operator holds. */
export const ALL_SCOPES = ["*:*"];

/** What a worker's run token carries when the worker has no scopes of its own (contract 2.7). */
export const WORKER_SCOPES_DEFAULT = [
  "read:workers",
  "read:departments",
  "read:tasks",
  "read:memory",
  "write:memory",
  "write:messages",
  "read:questions",
  "write:questions",
];

/** The service as an actor. */
export const SYSTEM_ACTOR = "system";

/** The bee as a caller and as an actor. */
export const BEE_SUBJECT = "bee";

/** What the bee's run token carries (contract 2.7). */
export const BEE_SCOPES = ["read:*", "write:tasks", "write:memory", "write:sessions", "write:messages"];

/** Whether one of the held scopes covers the wanted one; `*` in a held scope matches all. */
export function grants(held: readonly string[], wanted: string): boolean {
  const [verb, resource] = wanted.split(":");
  return held.some((entry) => {
    const [heldVerb, heldResource] = entry.split(":");
    return (heldVerb === "*" || heldVerb === verb) && (heldResource === "*" || heldResource === resource);
  });
}

/** Whether this caller may do what asks for `wanted`. A run never reaches what is for people (contract 9). */
export function mayCall(caller: Caller, wanted: Scope): boolean {
  if (caller.run === null) return grants(caller.scopes, wanted);
  return !closedToRuns(wanted) && grants(caller.scopes.flatMap(scopesOfRun), wanted);
}

/** Whether no run may do this, whatever its scopes are (contract 9). */
export function closedToRuns(wanted: string): boolean {
  const [verb, name] = wanted.split(":");
  const isOne = (list: readonly Resource[]) => list.some((resource) => resource === name);
  return isOne(CLOSED_TO_RUNS) || verb !== "read" && isOne(READ_ONLY_FOR_RUNS);
}

function scopesOfRun(held: string): string[] {
  return held === "read:*" ? READ_ALL_OF_RUNS.map((resource) => `read:${resource}`) : [held];
}

/** Scopes of the list that give a run nothing: no route asks for them, or they are for people (contract 2.6, contract 9). */
export function idleScopes(scopes: readonly string[]): string[] {
  const useful = RESOURCES.flatMap((resource) => VERBS.map((verb) => `${verb}:${resource}`))
    .filter((one) => !closedToRuns(one));
  return scopes.filter((entry) => !useful.some((one) => grants([entry], one)));
}

/** Who calls, and what they may do. Every operation takes one. */
export interface Caller {
  /** `user:<name>`, `token:<name>`, `runner:<name>`, `worker:<id>` or `bee`; goes into the journal as the actor (contract 9). */
  subject: string;
  scopes: readonly string[];
  /** Set for a run token: what the run is bound to. */
  run: RunBinding | null;
  /** Set for people, and for the tokens that they gave to programs. */
  person: Person | null;
  /** Set for another machine that runs workers; it may call nothing but what is for runners. */
  runner?: RunnerBinding;
}

/** The runner that a token belongs to (contract 18). */
export interface RunnerBinding {
  id: string;
  name: string;
}

/** A user who calls (contract 9). */
export interface Person {
  userId: string;
  name: string;
  /** `key`: `ctl` beside the signing key; `login`: a login; `token`: a named token. */
  by: "key" | "login" | "token";
}

/** What a run token is made for (contract 2.8). */
export interface RunBinding extends RunKeys {
  attempt: number;
  /** How many tasks of agents led to this run's task; for the bee one less than led to its message, so that its tasks are of that depth. */
  depth: number;
}

/** The conversation a caller is bound to, or null when it may see all: operators, and runs that hold `*:*`. */
export function boundTo(caller: Caller): string | null {
  if (caller.run === null || grants(caller.scopes, "*:*") && caller.scopes.includes("*:*")) return null;
  return caller.run.session_key;
}
