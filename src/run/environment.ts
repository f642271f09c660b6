import { delimiter } from "node:path";
import type { Engine } from "../engine/engine.ts";
import { GATEWAY_KEY } from "../engine/protocol/adapter.ts";
import { getTempDir } from "../engine/run_dir.ts";
import { type DataPaths, getCtlPath } from "../base/paths.ts";
import { buildProxyBypass } from "../base/proxy.ts";
import type { RunIdentity } from "../domain/call/run_identity.ts";
import type { RunServer } from "../engine/protocol/adapter.ts";
import { listServerValues, placeServerValues } from "./mcp_servers.ts";
import { findSecrets } from "./secrets.ts";
import type { Grant, TokenRequest } from "./run_token.ts";
import type { VariableResolver } from "./variables.ts";
import { buildMasks } from "../engine/process/masks.ts";

interface EnvironmentRequest {
  identity: RunIdentity;
  grant: Grant;
  engine: Engine;
  runDir: string;
  contextPath: string;
  /** Total time limit of the run, when it exceeds the engine's limit. */
  lifeMs?: number | undefined;
  /** Leaves out variables with a stored secret, for a gate. */
  withoutSecrets?: true;
}

/** The environment of a run, and its values that must not be stored. */
interface RunEnvironment {
  env: Record<string, string>;
  /** The variables of the configuration and the worker, which override those of the engine's adapter. */
  ownEnv: Record<string, string>;
  secrets: string[];
  /** Names of the variables with a stored secret or a value of an MCP server, which checks and gates do not get. */
  secretNames: string[];
  /** The MCP servers of the worker. */
  servers: RunServer[];
}

/** Returns the traceparent that the programs of a run get. null for an unknown run. */
export type RunTracer = (executionId: string) => Promise<string | null>;

interface EnvironmentOptions {
  paths: DataPaths;
  /** Creates the token of a run that is valid for `lifeS` seconds. */
  tokenOf: (run: TokenRequest) => Promise<string>;
  timeZone: string;
  /** The server's address for agents. */
  url: () => string;
  /** Resolves the variables of an engine and of a worker. Throws SetupError. */
  resolveVariables: VariableResolver;
  /** undefined while traces are off. */
  traceRun?: RunTracer | undefined;
  /** The server's environment. Only listed variables are passed on. */
  inherited: Record<string, string | undefined>;
}

// The token must outlive the run, which ends at its time limit.
const TOKEN_MARGIN_S = 600;

/** Builds the environment of a run. */
export type EnvironmentBuilder = (request: EnvironmentRequest) => Promise<RunEnvironment>;

/**
 * Creates the function that builds environments from a list, never by inheritance: an agent must not see the signing key, the database
 * token or the operator's password (contract 4.8, reliability CHD-10).
 */
export function createEnvironmentBuilder(options: EnvironmentOptions): EnvironmentBuilder {
  const { paths, tokenOf, timeZone, url, inherited, resolveVariables, traceRun } = options;
  return async (request) => {
    const { identity, grant, engine, runDir, contextPath, lifeMs = engine.config.timeout } = request;
    const { session_key, worker_id, task_id, execution_id, message_id, run_id } = identity;
    const token = await tokenOf({ identity, grant, lifeS: Math.ceil(lifeMs / 1000) + TOKEN_MARGIN_S });
    const { configured, own, secrets, mcp } = await resolveVariables(
      engine,
      worker_id,
      request.withoutSecrets ?? false,
    );
    const trace = await traceRun?.(execution_id) ?? null;
    const extra = { ...pickVariables(inherited, engine.inheritedVariables), ...configured };
    const placed = placeServerValues(mcp.servers);
    const env: Record<string, string> = {
      HOME: inherited.HOME ?? runDir,
      SHELL: inherited.SHELL ?? "/bin/sh",
      LANG: "C.UTF-8",
      TERM: "dumb",
      TZ: timeZone,
      TMPDIR: getTempDir(runDir),
      NO_COLOR: "1",
      ...extra,
      ...buildProxyBypass(extra),
      ...own,
      PATH: [paths.bin, configured.PATH ?? inherited.PATH ?? "/usr/local/bin:/usr/bin:/bin"].join(delimiter),
      SVC_URL: url(),
      SVC_TOKEN: token,
      SVC_CTL: getCtlPath(paths),
      SVC_RUN_ID: run_id,
      SVC_EXECUTION_ID: execution_id,
      SVC_TASK_ID: task_id,
      SVC_WORKER_ID: worker_id,
      SVC_SESSION_KEY: session_key,
      SVC_MESSAGE_ID: message_id,
      SVC_CONTEXT_FILE: contextPath,
      ...(trace === null ? {} : { TRACEPARENT: trace }),
      ...(engine.config.gateway === undefined ? {} : { [GATEWAY_KEY]: token }),
      ...placed.env,
    };
    const keys = listServerValues(mcp.servers).flatMap(([name, value]) =>
      findSecrets({ [/^authorization$/i.test(name) ? "TOKEN" : name]: value })
    );
    return {
      env,
      ownEnv: { ...configured, ...own },
      // The longest first: a secret that is the start of another one would leave the rest of it.
      secrets: [
        token,
        ...findSecrets({ ...extra, ...own }),
        ...keys,
        ...buildMasks([...Object.values(secrets), ...mcp.secrets]),
      ]
        .sort((one, other) => other.length - one.length),
      secretNames: [...Object.keys(secrets), ...Object.keys(placed.env)],
      servers: placed.servers,
    };
  };
}

function pickVariables(
  from: Record<string, string | undefined>,
  names: readonly string[],
): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = from[name];
    // The service's own secrets are never passed on, even when the engine lists them.
    if (value !== undefined && !name.startsWith("SVC_")) found[name] = value;
  }
  return found;
}
