import { readSecretReference } from "../domain/account/secret.ts";
import {
  getServerValues,
  hasControl,
  type McpServer,
  type McpServers,
} from "../domain/workers/mcp_server.ts";
import { findVariableFault } from "../domain/workers/worker_env.ts";
import type { Engine } from "../engine/engine.ts";
import { listWorkerGateways } from "../store/work/gateway_use.ts";
import { listGrantedSecrets } from "../store/account/secret.ts";
import type { SecretStore } from "../store/account/secret_store.ts";
import type { Database } from "../store/db/database.ts";
import { findSecretSettings } from "../store/workers/worker.ts";
import { NO_SERVERS, type ResolvedServers } from "./mcp_servers.ts";

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
  /** The worker's MCP servers; none `withoutSecrets`. */
  mcp: ResolvedServers;
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
  const read = buildReader(secrets);
  return async (engine, workerId, withoutSecrets) => {
    if (!withoutSecrets) {
      await checkGateways(
        [engine.config.gateway ?? [], await listWorkerGateways(db, workerId)].flat(),
        findGatewayProblem,
      );
    }
    const { env: own, mcp } = await findSecretSettings(db, workerId);
    checkNames(own, engine.adapterVariables);
    if (!withoutSecrets) await checkGrants(db, workerId, { ...own, ...labelServerValues(mcp) });
    const [engineVariables, workerVariables, servers] = await Promise.all([
      resolve(engine.config.env, withoutSecrets ? null : read),
      resolve(own, withoutSecrets ? null : read),
      withoutSecrets ? NO_SERVERS : resolveServers(mcp, read),
    ]);
    return {
      mcp: servers,
      configured: engineVariables.values,
      own: workerVariables.values,
      secrets: { ...engineVariables.secrets, ...workerVariables.secrets },
    };
  };
}

/** The variables of a worker as the service sends them to a runner. */
export interface SentVariables {
  env: Record<string, string>;
  secrets: Record<string, string>;
  mcp: ResolvedServers;
  /** Why the run has to fail with `setup`, "" if it can start. */
  setup_error: string;
}

/**
 * Creates the function that resolves the variables of a worker for a runner. Values of secrets are among them only if `hasSecrets`.
 */
export function createSentVariables(
  { db, secrets, findGatewayProblem }: ResolverOptions,
): (request: { workerId: string; gateway: string | null; hasSecrets: boolean }) => Promise<SentVariables> {
  const read = buildReader(secrets);
  return async ({ workerId, gateway, hasSecrets }) => {
    try {
      await checkGateways([gateway ?? [], await listWorkerGateways(db, workerId)].flat(), findGatewayProblem);
      const { env: own, mcp } = await findSecretSettings(db, workerId);
      await checkGrants(db, workerId, { ...own, ...labelServerValues(mcp) });
      const found = await resolve(own, hasSecrets ? read : refuseSecret);
      const servers = await resolveServers(mcp, hasSecrets ? read : refuseSecret);
      const env = Object.entries(found.values).filter(([name]) => !(name in found.secrets));
      return { env: Object.fromEntries(env), secrets: found.secrets, mcp: servers, setup_error: "" };
    } catch (error) {
      if (!(error instanceof SetupError)) throw error;
      return { env: {}, secrets: {}, mcp: NO_SERVERS, setup_error: error.message };
    }
  };
}

function refuseSecret(variable: string): never {
  throw new SetupError(
    `Cannot set ${variable}: its runner gets no secrets. Add a runner with svc ctl runner add --secrets.`,
  );
}

function buildReader(secrets: SecretStore): (variable: string, reference: string) => Promise<string> {
  return (variable, reference) =>
    secrets.resolve(reference).catch((error) => {
      throw new SetupError(`Cannot set ${variable}: ${error instanceof Error ? error.message : error}`);
    });
}

async function checkGateways(
  names: readonly string[],
  findGatewayProblem: ResolverOptions["findGatewayProblem"],
): Promise<void> {
  for (const name of names) {
    const problem = await findGatewayProblem(name);
    if (problem !== null) throw new SetupError(`Cannot use the gateway ${name}: ${problem}`);
  }
}

/** Creates the resolver of one run on a runner. A runner has no stored secrets: the service sends it the values. */
export function createSentResolver({ env, secrets, mcp, setup_error }: SentVariables): VariableResolver {
  return async ({ config, adapterVariables }, _workerId, withoutSecrets) => {
    if (setup_error !== "") throw new SetupError(setup_error);
    checkNames({ ...env, ...secrets }, adapterVariables);
    const { values: configured } = await resolve(config.env, (variable) => {
      throw new SetupError(
        `Cannot set ${variable}: a runner stores no secrets. Set the value in runner.yaml, or use a variable of the worker.`,
      );
    });
    const shown = withoutSecrets ? {} : secrets;
    return {
      configured,
      own: { ...env, ...shown },
      secrets: shown,
      mcp: withoutSecrets ? NO_SERVERS : mcp,
    };
  };
}

// The engine may have changed since the write.
function checkNames(own: Record<string, string>, adapterVariables: readonly string[]): void {
  for (const name of Object.keys(own)) {
    const fault = findVariableFault(name, adapterVariables);
    if (fault !== null) throw new SetupError(`Cannot set the worker's variable ${name}: it ${fault}.`);
  }
}

/** Names each value of a server after its field. */
function labelServerValues(servers: McpServers): Record<string, string> {
  return Object.fromEntries(
    Object.entries(servers).flatMap(([name, server]) =>
      Object.entries(getServerValues(server)).map(([key, value]) => [`mcp.${name}.${key}`, value])
    ),
  );
}

async function resolveServers(
  servers: McpServers,
  read: (variable: string, reference: string) => Promise<string>,
): Promise<ResolvedServers> {
  const { values, secrets } = await resolve(labelServerValues(servers), read);
  const resolved = Object.entries(servers).map(([name, server]): [string, McpServer] => {
    const found = Object.keys(getServerValues(server)).map((
      key,
    ) => [key, values[`mcp.${name}.${key}`] ?? ""]);
    const filled = Object.fromEntries(found) as Record<string, string>;
    if ("command" in server) return [name, { ...server, env: filled }];
    const bad = Object.keys(filled).find((key) => hasControl(filled[key] ?? ""));
    if (bad !== undefined) {
      throw new SetupError(
        `Cannot set mcp.${name}.${bad}: the secret has a line break or another control character.`,
      );
    }
    return [name, { ...server, headers: filled }];
  });
  return { servers: Object.fromEntries(resolved), secrets: Object.values(secrets) };
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
