import { delimiter, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Engine } from "../engine/engine.ts";
import { ctlPath, type DataPaths } from "../base/paths.ts";
import { signToken } from "../base/token.ts";

/** Who runs, for what: what its token says and its environment shows. */
export interface RunIdentity {
  /** `worker:<id>` or `bee`. */
  subject: string;
  scopes: readonly string[];
  /** The execution, or the coordinator's run. */
  id: string;
  attempt: number;
  runId: string;
  workerId: string;
  taskId: string;
  sessionKey: string;
  messageId: string;
}

/** For which run an environment is made. */
export interface EnvironmentRequest {
  identity: RunIdentity;
  engine: Engine;
  runDir: string;
  contextPath: string;
}

/** The complete environment of a run, and what of it must not be stored anywhere. */
export interface RunEnvironment {
  env: Record<string, string>;
  secrets: string[];
}

/** What environments are made from. */
export interface EnvironmentOptions {
  clock: Clock;
  paths: DataPaths;
  key: Uint8Array;
  timeZone: string;
  /** The server's address as agents reach it. */
  url: () => string;
  /** The server's own environment, from which only what is listed is passed on. */
  inherited: Record<string, string | undefined>;
}

// A run ends by its time limit; the token must not end before it.
const TOKEN_MARGIN_S = 600;

/**
 * Builds environments from a list, never by inheriting: an agent must not see the signing key, the database's
 * token or the operator's password (contract 4, point 8, promises CHD-10).
 */
export function createEnvironments(
  options: EnvironmentOptions,
): (request: EnvironmentRequest) => Promise<RunEnvironment> {
  const { clock, paths, key, timeZone, url, inherited } = options;
  return async ({ identity, engine, runDir, contextPath }) => {
    const { config } = engine;
    const token = await signToken(
      key,
      {
        typ: "run",
        sub: identity.subject,
        scope: identity.scopes.join(" "),
        ver: 1,
        execution_id: identity.id,
        attempt: identity.attempt,
        worker_id: identity.workerId,
        session_key: identity.sessionKey,
        message_id: identity.messageId,
      },
      Math.ceil(config.timeout / 1000) + TOKEN_MARGIN_S,
      clock.now(),
    );
    const own = { ...picked(inherited, engine.passes), ...config.env };
    const env: Record<string, string> = {
      HOME: inherited.HOME ?? runDir,
      SHELL: inherited.SHELL ?? "/bin/sh",
      LANG: "C.UTF-8",
      TERM: "dumb",
      TZ: timeZone,
      TMPDIR: join(runDir, "tmp"),
      NO_COLOR: "1",
      ...own,
      PATH: [paths.bin, config.env.PATH ?? inherited.PATH ?? "/usr/local/bin:/usr/bin:/bin"].join(delimiter),
      SVC_URL: url(),
      SVC_TOKEN: token,
      SVC_CTL: ctlPath(paths),
      SVC_RUN_ID: identity.runId,
      SVC_EXECUTION_ID: identity.id,
      SVC_TASK_ID: identity.taskId,
      SVC_WORKER_ID: identity.workerId,
      SVC_SESSION_KEY: identity.sessionKey,
      SVC_MESSAGE_ID: identity.messageId,
      SVC_CONTEXT_FILE: contextPath,
    };
    return { env, secrets: [token, ...secretsOf(own)] };
  };
}

// A short value is no secret that could be guarded: it would be masked in the middle of words.
const SECRET_MIN_CHARACTERS = 12;

/** The values that, by their names, are keys of the engine's own (promises SEC-2). */
function secretsOf(env: Record<string, string>): string[] {
  return Object.entries(env)
    .filter(([name, value]) =>
      /KEY|TOKEN|SECRET|PASSWORD/i.test(name) && value.length >= SECRET_MIN_CHARACTERS
    )
    .map(([, value]) => value);
}

function picked(from: Record<string, string | undefined>, names: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of names) {
    const value = from[name];
    // Our own secrets are not for passing on, whatever the list says.
    if (value !== undefined && !name.startsWith("SVC_")) found[name] = value;
  }
  return found;
}
