import { readSecretReference } from "../domain/account/secret.ts";
import { findVariableFault } from "../domain/workers/worker_env.ts";
import type { Engine } from "../engine/engine.ts";
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

/** The variables of a worker as the service sends them to a runner. */
export interface SentVariables {
  env: Record<string, string>;
  secrets: Record<string, string>;
  mcp: ResolvedServers;
  /** Why the run has to fail with `setup`, "" if it can start. */
  setup_error: string;
}

/** Creates the resolver of one run on a runner. A runner has no stored secrets: the service sends it the values. */
export function createSentResolver({ env, secrets, mcp, setup_error }: SentVariables): VariableResolver {
  return async ({ config, adapterVariables }, _workerId, withoutSecrets) => {
    if (setup_error !== "") throw new SetupError(setup_error);
    checkNames({ ...env, ...secrets }, adapterVariables);
    const { values: configured } = await resolveReferences(config.env, (variable) => {
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

/** Throws SetupError for a variable that the engine refuses. The engine may have changed since the write. */
export function checkNames(own: Record<string, string>, adapterVariables: readonly string[]): void {
  for (const name of Object.keys(own)) {
    const fault = findVariableFault(name, adapterVariables);
    if (fault !== null) throw new SetupError(`Cannot set the worker's variable ${name}: it ${fault}.`);
  }
}

/** Replaces references by their values. Without `read`, leaves out variables with a reference. */
export async function resolveReferences(
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
