import { invalid, ServiceError } from "../../domain/call/error.ts";
import { formatJson, type Json, parseJson } from "../../domain/call/json.ts";
import { mayCall } from "../../domain/call/scope.ts";
import { readSecretReference } from "../../domain/account/secret.ts";
import { hideRepoSecret } from "../../domain/workers/repo.ts";
import type { Worker } from "../../domain/workers/worker.ts";
import { hideServerSecrets } from "../../domain/workers/mcp_server.ts";
import { listWorkerSecrets, type SecretSettings } from "../../domain/workers/worker_secrets.ts";
import { findVariableFault, hideSecretNames, WORKER_ENV_MAX } from "../../domain/workers/worker_env.ts";
import { findSecret, grantSecret, listGrantedSecrets } from "../../store/account/secret.ts";
import type { Statement } from "../../store/db/database.ts";
import { record } from "../../store/events/journal.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";

/** A change of variables: null removes one. */
type EnvPatch = Record<string, string | null>;

interface EnvChange {
  /** Null for a new worker. */
  workerId: string | null;
  engine: string;
  before: Record<string, string>;
  patch: EnvPatch;
  /** Prefix of field names in errors. */
  path?: string;
}

/** Returns the differences between the stored variables and those of a request, in which null removes a variable. */
export function findEnvPatch(call: Call, before: Record<string, string>, wanted: EnvPatch): EnvPatch {
  // A client may send back what GET returned.
  const shown = seesSecretNames(call) ? before : hideSecretNames(before);
  return Object.fromEntries(
    Object.entries(wanted).filter(([name, value]) =>
      value !== before[name] && value !== (shown[name] ?? null)
    ),
  );
}

/** Returns the patch that turns `before` into `wanted`. */
export function buildEnvPatch(before: Record<string, string>, wanted: Record<string, string>): EnvPatch {
  const removed = Object.keys(before).filter((name) => wanted[name] === undefined);
  const set = Object.entries(wanted).filter(([name, value]) => before[name] !== value);
  return { ...Object.fromEntries(removed.map((name) => [name, null])), ...Object.fromEntries(set) };
}

/** Returns the variables after a change. */
export function applyEnvPatch(before: Record<string, string>, patch: EnvPatch): Record<string, string> {
  return Object.fromEntries(
    Object.entries({ ...before, ...patch }).filter((entry): entry is [string, string] => entry[1] !== null),
  );
}

/**
 * Checks the variables of a worker after a change. Throws `forbidden` for a caller who cannot set them (all runs), and
 * `invalid_request` for a variable that the engine's adapter sets, and for a secret that the worker may not use.
 */
export async function checkEnv(
  { db, engines }: Deps<"db" | "engines">,
  call: Call,
  { workerId, engine, before, patch, path = "" }: EnvChange,
): Promise<void> {
  const env = applyEnvPatch(before, patch);
  const field = `${path}env`;
  if (Object.keys(patch).length > 0) requireScope(call, "write:commands", field);
  if (Object.keys(env).length > WORKER_ENV_MAX) {
    throw invalid(field, `must be at most ${WORKER_ENV_MAX} variables`);
  }
  for (const name of Object.keys(env)) {
    const fault = findVariableFault(name, engines.find(engine)?.adapterVariables);
    if (fault !== null) throw invalid(`${field}.${name}`, fault);
  }
  const named = Object.values(patch).flatMap((value) =>
    value === null ? [] : readSecretReference(value) ?? []
  );
  await checkNamedSecrets({ db }, call, { workerId, named, field });
}

/**
 * Checks the secrets that a change of a worker names. Throws `forbidden` for a caller who cannot grant them, and `invalid_request` for one
 * that the worker may not use.
 */
export async function checkNamedSecrets(
  { db }: Deps<"db">,
  call: Call,
  { workerId, named, field }: { workerId: string | null; named: readonly string[]; field: string },
): Promise<void> {
  if (named.length === 0) return;
  requireScope(call, "write:secrets", field);
  const granted = workerId === null ? null : await listGrantedSecrets(db, workerId, named);
  for (const name of named) {
    if (await findSecret(db, name) === null) {
      throw invalid(field, `no secret is called ${name}. Set it with svc ctl secret set ${name}`);
    }
    if (granted === null || granted.has(name)) continue;
    throw invalid(
      field,
      `the worker may not use the secret ${name}. Run svc ctl secret grant ${name} --worker ${workerId}`,
    );
  }
}

/** Throws `forbidden` for a caller without the scope that the field at `path` needs. */
export function requireScope(
  { caller }: Call,
  scope: "write:commands" | "write:secrets",
  path: string,
): void {
  if (mayCall(caller, scope)) return;
  throw new ServiceError("forbidden", `Cannot set ${path}: this token lacks the scope ${scope}`, {
    required_scope: scope,
    errors: [{ path, message: `needs the scope ${scope}` }],
  });
}

/** Builds the grants of the secrets that a new worker names. Only callers who could grant them get here. */
export function grantNamedSecrets(
  actor: string,
  workerId: string,
  settings: SecretSettings,
  now: number,
): Statement[] {
  return listWorkerSecrets(settings).flatMap((name) => [
    grantSecret(name, workerId),
    record(now, { kind: "secret.updated", actor, worker_id: workerId, data: { name, changed: ["workers"] } }),
  ]);
}

/** Whether the caller may change variables, and so may see the names of secrets in them. */
export function seesSecretNames({ caller }: Call): boolean {
  return mayCall(caller, "write:workers") && mayCall(caller, "write:commands");
}

// Quotes in JSON values are escaped, so a match is the start of a value.
const REFERENCE = '"secret:';

/** Hides the names of secrets from callers who may not change what names them. Parses the JSON only if there may be one. */
export function hideSecrets<T extends Worker | Worker[]>(call: Call, json: Json<T>): Json<T> {
  if (!json.includes(REFERENCE) || seesSecretNames(call)) return json;
  const value = parseJson<Worker | Worker[]>(json);
  for (const worker of [value].flat()) {
    worker.env = hideSecretNames(worker.env);
    if (worker.repo !== null) worker.repo = hideRepoSecret(worker.repo);
    worker.mcp = hideServerSecrets(worker.mcp);
  }
  return formatJson(value) as Json<T>;
}
