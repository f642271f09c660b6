import { readSecretReference } from "../../domain/account/secret.ts";
import {
  getServerValues,
  hasControl,
  type McpServer,
  type McpServers,
} from "../../domain/workers/mcp_server.ts";
import { listGrantedSecrets } from "../../store/account/secret.ts";
import type { SecretStore } from "../../store/account/secret_store.ts";
import type { Database } from "../../store/db/database.ts";
import { listWorkerGateways } from "../../store/work/gateway_use.ts";
import { findSecretSettings } from "../../store/workers/worker.ts";
import { NO_SERVERS, type ResolvedServers } from "../mcp_servers.ts";
import {
  checkNames,
  resolveReferences,
  type SentVariables,
  SetupError,
  type VariableResolver,
} from "../variables.ts";

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
      resolveReferences(engine.config.env, withoutSecrets ? null : read),
      resolveReferences(own, withoutSecrets ? null : read),
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
      const found = await resolveReferences(own, hasSecrets ? read : refuseSecret);
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
  const { values, secrets } = await resolveReferences(labelServerValues(servers), read);
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
