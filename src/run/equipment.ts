import { join } from "node:path";
import type { Config } from "../config/schema.ts";
import { contextFile } from "../domain/prompt.ts";
import { WORKER_SCOPES_DEFAULT } from "../domain/scope.ts";
import type { Engine, EngineOutcome, EngineRun } from "../engine/engine.ts";
import { ctlPath, type DataPaths, runDirOf, stateDirOf } from "../base/paths.ts";
import type { Database } from "../store/database.ts";
import { findContext } from "../store/session.ts";
import { findWorker } from "../store/worker.ts";
import { brief } from "./briefing.ts";
import type { Claim } from "./claim.ts";
import type { EnvironmentRequest, RunEnvironment, RunIdentity } from "./environment.ts";

/** What equipment is made of. */
export interface EquipmentOptions {
  db: Database;
  config: Config;
  paths: DataPaths;
  /** The environment and token of a run. */
  environmentOf: (request: EnvironmentRequest) => Promise<RunEnvironment>;
}

/** What a run is given beside its claim. */
export interface Equipment extends
  Pick<
    EngineRun,
    "runDir" | "stateDir" | "env" | "prompt" | "retelling" | "session" | "extraArgs" | "tools"
  > {
  /** Values that must not be stored in a log. */
  secrets: string[];
}

/** What a run in this very process needs: nothing. */
export const BARE: Equipment = {
  runDir: "",
  stateDir: null,
  env: {},
  prompt: "",
  retelling: "",
  session: null,
  extraArgs: "",
  tools: null,
  secrets: [],
};

/** What a program outside of this process gets: its briefing, its environment, a directory of its own, and its session. */
export async function equip(options: EquipmentOptions, claim: Claim, engine: Engine): Promise<Equipment> {
  const { db, paths, environmentOf } = options;
  const { execution } = claim;
  const runDir = runDirOf(paths, execution.run_id);
  const contextPath = join(runDir, "context.json");
  const [{ env, secrets }, briefing, session] = await Promise.all([
    identityOf(db, claim).then((identity) => environmentOf({ identity, engine, runDir, contextPath })),
    brief(db, claim, ctlPath(paths)),
    sessionOf(db, claim, engine),
  ]);
  Deno.mkdirSync(join(runDir, "tmp"), { recursive: true, mode: 0o700 });
  Deno.writeTextFileSync(contextPath, contextFile(briefing.context, execution.instruction), { mode: 0o600 });
  return {
    runDir,
    stateDir: stateDirOf(paths, execution.worker_id, engine),
    env,
    secrets,
    prompt: briefing.prompt,
    retelling: briefing.retelling,
    session,
    extraArgs: briefing.engineArgs[engine.name] ?? "",
    tools: toolsOf(env, engine),
  };
}

/** The service's own tools, for an engine that speaks the protocol; the run's token decides which there are. */
export function toolsOf(env: Record<string, string>, engine: Engine): EngineRun["tools"] {
  if (!engine.agent) return null;
  return { url: `${env.SVC_URL}/mcp`, tokenVariable: "SVC_TOKEN", token: env.SVC_TOKEN ?? "" };
}

async function identityOf(db: Database, { execution }: Claim): Promise<RunIdentity> {
  const worker = await findWorker(db, execution.worker_id);
  return {
    subject: `worker:${execution.worker_id}`,
    scopes: worker === null || worker.scopes.length === 0 ? WORKER_SCOPES_DEFAULT : worker.scopes,
    id: execution.id,
    attempt: execution.attempt,
    runId: execution.run_id,
    workerId: execution.worker_id,
    taskId: execution.task_id,
    sessionKey: execution.session_key,
    messageId: execution.message_id,
  };
}

// Only immediate tasks go on with a conversation, and only where it began: most engines look for a session in the
// directory in which they are (contract 3, Session context; facts, engines 2.11).
async function sessionOf(db: Database, claim: Claim, engine: Engine): Promise<Equipment["session"]> {
  if (!engine.agent || claim.task.type !== "immediate") return null;
  const { session_key, worker_id } = claim.execution;
  const context = await findContext(db, session_key, worker_id, engine.name);
  if (context === null || context.work_dir !== claim.workDir) return null;
  return { id: context.session_id, usage: context.usage };
}

/** The outcome with the run's token and keys masked: an answer is stored and shown like a log (promises SEC-3). */
export function withoutSecrets(secrets: readonly string[], outcome: EngineOutcome): EngineOutcome {
  const mask = (text: string) => secrets.reduce(masked, text);
  return { ...outcome, text: mask(outcome.text), error: mask(outcome.error) };
}

const PART_MIN_CHARACTERS = 12;

// Of long complaints an engine keeps the end, and with it perhaps the end of a secret: a token's is its signature.
function masked(text: string, secret: string): string {
  if (!text.includes(secret.slice(-PART_MIN_CHARACTERS))) return text;
  let safe = text.replaceAll(secret, "*".repeat(secret.length));
  for (let length = secret.length - 1; length >= PART_MIN_CHARACTERS; length--) {
    safe = safe.replaceAll(secret.slice(-length), "*".repeat(length));
  }
  return safe;
}
