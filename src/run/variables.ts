import { readSecretReference } from "../domain/account/secret.ts";
import { findVariableFault } from "../domain/workers/worker_env.ts";
import type { Engine } from "../engine/engine.ts";
import { listWorkerGateways } from "../store/work/gateway_use.ts";
import { listGrantedSecrets } from "../store/account/secret.ts";
import type { SecretStore } from "../store/account/secret_store.ts";
import type { Database } from "../store/db/database.ts";
import { findWorkerEnv } from "../store/workers/worker.ts";

/** The settings of a run cannot be used: it fails with `setup`. */
export class SetupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "SetupError";
  }
}

interface Variables {
  /** The engine's variables in the configuration. */
  configured: Record<string, string>;
  /** The worker's variables. */
  own: Record<string, string>;
  /** The values of stored secrets, by variable. */
  secrets: Record<string, string>;
}

/** Resolves the variables of an engine and a worker. Throws SetupError. */
export type VariableResolver = (
  engine: Engine,
  workerId: string,
  withoutSecrets: boolean,
) => Promise<Variables>;

interface ResolverOptions {
  db: Database;
  secrets: SecretStore;
  /** Returns why a gateway cannot be used, or null. */
  findGatewayProblem: (name: string) => Promise<string | null>;
}

/** Creates the resolver of the service, which reads workers and secrets. Checks the gateways of a run, too. */
export function createVariableResolver(
  { db, secrets, findGatewayProblem }: ResolverOptions,
): VariableResolver {
  return async (engine, workerId, withoutSecrets) => {
    if (!withoutSecrets) {
      for (const name of [engine.config.gateway ?? [], await listWorkerGateways(db, workerId)].flat()) {
        const problem = await findGatewayProblem(name);
        if (problem !== null) throw new SetupError(`Cannot use the gateway ${name}: ${problem}`);
      }
    }
    const read = (variable: string, reference: string) =>
      secrets.resolve(reference).catch((error) => {
        throw new SetupError(`Cannot set ${variable}: ${error instanceof Error ? error.message : error}`);
      });
    const own = workerId === "" ? {} : await findWorkerEnv(db, workerId);
    checkNames(own, engine.adapterVariables);
    if (!withoutSecrets) await checkGrants(db, workerId, own);
    const [engineVariables, workerVariables] = await Promise.all([
      resolve(engine.config.env, withoutSecrets ? null : read),
      resolve(own, withoutSecrets ? null : read),
    ]);
    return {
      configured: engineVariables.values,
      own: workerVariables.values,
      secrets: { ...engineVariables.secrets, ...workerVariables.secrets },
    };
  };
}

/** Resolves the variables of a runner's engines. A runner has no secrets, and the service sends it the worker's variables. */
export function createPlainResolver(own: Record<string, string>): VariableResolver {
  const refuse = (remedy: string) => (variable: string) => {
    throw new SetupError(`Cannot set ${variable}: a runner has no secrets. ${remedy}`);
  };
  return async ({ config, adapterVariables }) => {
    checkNames(own, adapterVariables);
    const { values: configured } = await resolve(config.env, refuse("Set the value in runner.yaml."));
    const { values } = await resolve(own, refuse("Remove the worker's variable, or its labels."));
    return { configured, own: values, secrets: {} };
  };
}

// The engine may have changed since the write.
function checkNames(own: Record<string, string>, adapterVariables: readonly string[]): void {
  for (const name of Object.keys(own)) {
    const fault = findVariableFault(name, adapterVariables);
    if (fault !== null) throw new SetupError(`Cannot set the worker's variable ${name}: it ${fault}.`);
  }
}

async function checkGrants(db: Database, workerId: string, own: Record<string, string>): Promise<void> {
  const named = Object.entries(own).flatMap(([variable, value]) => {
    const name = readSecretReference(value);
    return name === null ? [] : [{ variable, name }];
  });
  if (named.length === 0) return;
  const granted = await listGrantedSecrets(db, workerId, named.map(({ name }) => name));
  const refused = named.find(({ name }) => !granted.has(name));
  if (refused === undefined) return;
  throw new SetupError(
    `Cannot set ${refused.variable}: this worker may not use its secret. svc ctl system doctor names it, and ` +
      "svc ctl secret grant allows it.",
  );
}

/** Replaces references by their values. Without `read`, leaves out variables with a reference. */
async function resolve(
  variables: Record<string, string>,
  read: ((variable: string, reference: string) => Promise<string>) | null,
): Promise<{ values: Record<string, string>; secrets: Record<string, string> }> {
  const values: Record<string, string> = {};
  const secrets: Record<string, string> = {};
  for (const [variable, text] of Object.entries(variables)) {
    const name = readSecretReference(text);
    if (name === null) values[variable] = text;
    else if (read !== null) values[variable] = secrets[variable] = await read(variable, text);
  }
  return { values, secrets };
}
