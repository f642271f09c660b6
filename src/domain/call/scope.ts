import { z } from "zod";
import { findClosest, formatSuggestion } from "./closest.ts";
import type { RunKeys } from "./run_identity.ts";
import { type Resource, RESOURCES, type Scope, VERBS } from "./vocabulary.ts";

/** Resources that runs cannot reach, whatever their scopes (contract 9). */
const CLOSED_TO_RUNS: readonly Resource[] = [
  "users",
  "tokens",
  "platforms",
  "webhooks",
  "notices",
  "fleet",
  "runners",
  "runs",
  "secrets",
];

/** Resources that runs can only read (contract 9). */
const READ_ONLY_FOR_RUNS: readonly Resource[] = ["budgets", "engines", "commands"];

/** Resources of `read:*` for runs (contract 9). */
const READ_ALL_OF_RUNS: readonly Resource[] = [
  ...RESOURCES.slice(0, RESOURCES.indexOf("users")),
  "questions",
];

/** A scope with `*` for all. The service stores a scope that no route requires, but it grants nothing. */
export const scope = z.string()
  .regex(/^[a-z*]+:[a-z*-]+$/, { error: "must look like <verb>:<resource>, for example read:workers" })
  .max(100);

/** Returns why a scope grants nothing, with a suggestion, or null. */
export function findUnknownScope(given: string): string | null {
  const [verb = "", resource = ""] = given.split(":");
  if (!isWord(VERBS, verb)) return `${JSON.stringify(given)} must start with read:, write: or *:`;
  if (isWord(RESOURCES, resource)) return null;
  const close = findClosest(resource, RESOURCES).map((name) => `${verb}:${name}`);
  return `${JSON.stringify(given)} names no resource.${formatSuggestion(close)}`;
}

const isWord = (words: readonly string[], word: string) => word === "*" || words.includes(word);

export const ALL_SCOPES = ["*:*"];

/** Scopes of a run token when its worker has none (contract 2.7). */
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

export const SYSTEM_ACTOR = "system";

/** The bee as caller and as actor. */
export const BEE_SUBJECT = "bee";

export const BEE_SCOPES = ["read:*", "write:tasks", "write:memory", "write:sessions", "write:messages"];

/** Returns whether one of the held scopes covers `wanted`. `*` in a held scope matches all. */
export function grants(held: readonly string[], wanted: string): boolean {
  const [verb, resource] = wanted.split(":");
  return held.some((entry) => {
    const [heldVerb, heldResource] = entry.split(":");
    return (heldVerb === "*" || heldVerb === verb) && (heldResource === "*" || heldResource === resource);
  });
}

/** Returns whether a caller has a scope. Runs never have the scopes that are reserved for people (contract 9). */
export function mayCall(caller: Caller, wanted: Scope): boolean {
  if (caller.run === null) return grants(caller.scopes, wanted);
  return !isClosedToRuns(wanted) && grants(caller.scopes.flatMap(expandRunScopes), wanted);
}

/** Returns whether runs can never have this scope (contract 9). */
export function isClosedToRuns(wanted: string): boolean {
  const [verb, name] = wanted.split(":");
  const isOne = (list: readonly Resource[]) => list.some((resource) => resource === name);
  return isOne(CLOSED_TO_RUNS) || verb !== "read" && isOne(READ_ONLY_FOR_RUNS);
}

function expandRunScopes(held: string): string[] {
  return held === "read:*" ? READ_ALL_OF_RUNS.map((resource) => `read:${resource}`) : [held];
}

/**
 * Returns the scopes that give a run nothing: no route requires them, or they are reserved for people (contract 2.6, contract
 * 9).
 */
export function findIdleScopes(scopes: readonly string[]): string[] {
  const useful = RESOURCES.flatMap((resource) => VERBS.map((verb) => `${verb}:${resource}`))
    .filter((one) => !isClosedToRuns(one));
  return scopes.filter((entry) => !useful.some((one) => grants([entry], one)));
}

/** The caller of an operation and its scopes. */
export interface Caller {
  /** `user:<name>`, `token:<name>`, `runner:<name>`, `worker:<id>` or `bee`; the actor in the journal. */
  subject: string;
  scopes: readonly string[];
  /** Set for a run token. */
  run: RunBinding | null;
  /** Set for people, and for tokens that people gave to programs. */
  person: Person | null;
  /** Set for a runner machine, which may only call the runners' operations. */
  runner?: RunnerBinding;
}

/** The runner of a token (contract 18). */
export interface RunnerBinding {
  id: string;
  name: string;
}

export interface Person {
  userId: string;
  name: string;
  /** `key`: `ctl` with access to the signing key; `login`: a login; `token`: a named token. */
  by: "key" | "login" | "token";
  /** Id of the named token. */
  tokenId?: string;
  /** Id of the login, if there is one. */
  loginId?: string;
}

/** The objects that a run token is bound to (contract 2.8). */
export interface RunBinding extends RunKeys {
  attempt: number;
  /**
   * Number of agents' tasks that led to this run's task. For the bee one less than led to its message, so that its tasks get
   * that depth.
   */
  depth: number;
}

/** Returns the conversation that a caller is bound to, or null for operators and runs with `*:*`. */
export function getBoundSessionKey(caller: Caller): string | null {
  if (caller.run === null || grants(caller.scopes, "*:*") && caller.scopes.includes("*:*")) return null;
  return caller.run.session_key;
}
