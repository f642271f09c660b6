import { join } from "node:path";
import { replacePlain } from "../base/files/plain_file.ts";
import { type DataPaths, getStateDir } from "../base/paths.ts";
import { buildRelayVariables } from "../base/proxy.ts";
import { BEE_SUBJECT } from "../domain/call/scope.ts";
import type { Verify } from "../domain/work/command.ts";
import type { RunIdentity } from "../domain/call/run_identity.ts";
import type { Engine, EngineRun } from "../engine/engine.ts";
import type { BoxPlanner } from "./box.ts";
import { getInputDir, makeRunDir, placeInRunDir } from "../engine/run_dir.ts";
import { getSkillsDir, placeSkills, type RunSkill } from "../engine/process/skill_files.ts";
import { addServerPrograms } from "./mcp_servers.ts";
import type { EnvironmentBuilder } from "./environment.ts";
import type { Grant } from "./run_token.ts";

/** The prompt, session and arguments of a run. */
export interface Briefing extends Pick<EngineRun, "prompt" | "retelling" | "session" | "extraArgs"> {
  /** Content of the file SVC_CONTEXT_FILE. */
  context: string;
}

export interface LaunchRequest {
  identity: RunIdentity;
  engine: Engine;
  /** Owner of the engine state: a worker's id, or `bee`. */
  stateOwner: string;
  /** Called, like `brief`, only for an engine outside this process. */
  grant: () => Promise<Grant>;
  brief: () => Promise<Briefing>;
  /** The check of the work, or null (contract 13). */
  verify?: Verify | null;
  /** The worktree of the run, or null. */
  workspace?: { objects: string } | null;
  /** The skills of the worker. */
  skills?: readonly RunSkill[];
  /** Total time limit of the run, when it exceeds the engine's limit. */
  lifeMs?: number | undefined;
}

interface LaunchOptions extends
  Pick<
    EngineRun,
    | "runDir"
    | "stateDir"
    | "box"
    | "env"
    | "ownEnv"
    | "prompt"
    | "retelling"
    | "session"
    | "extraArgs"
    | "tools"
    | "servers"
    | "skills"
    | "rights"
  > {
  /** Values that must not be stored anywhere. */
  secrets: string[];
  /** Variables that a check does not get. */
  secretNames: string[];
}

/** An engine inside this process needs no launch options. Its check may need a box. */
const NO_OPTIONS: LaunchOptions = {
  runDir: "",
  stateDir: null,
  box: null,
  env: {},
  ownEnv: {},
  prompt: "",
  retelling: "",
  session: null,
  extraArgs: "",
  tools: null,
  servers: [],
  skills: [],
  rights: "",
  secrets: [],
  secretNames: [],
};

/** Prepares the launch options of a program: briefing, environment, and the private directory `runDir`. */
export async function prepareLaunch(
  { paths, environmentOf, planBox }: {
    paths: DataPaths;
    environmentOf: EnvironmentBuilder;
    planBox: BoxPlanner;
  },
  request: LaunchRequest & Pick<EngineRun, "workDir">,
  runDir: string,
): Promise<LaunchOptions> {
  const { engine, identity, grant, brief, stateOwner, workDir, lifeMs, verify = null, workspace = null } =
    request;
  const { skills = [] } = request;
  const workerId = stateOwner === BEE_SUBJECT ? null : stateOwner;
  const place = {
    workerId,
    engine,
    workDir,
    runDir,
    messageId: identity.message_id,
    ...workspace && { objects: workspace.objects },
  };
  if (!engine.external) {
    if (!verify && workspace === null) return NO_OPTIONS;
    makeRunDir(runDir);
    return { ...NO_OPTIONS, runDir, box: await planBox({ ...place, stateDir: null }) };
  }
  const contextPath = join(getInputDir(runDir), "context.json");
  const [{ rights, env, ...variables }, { context, ...briefing }] = await Promise.all([
    grant().then(async (grant) => ({
      rights: grant.scopes.join(" "),
      ...await environmentOf({ identity, grant, engine, runDir, contextPath, lifeMs }),
    })),
    brief(),
  ]);
  makeRunDir(runDir);
  // An agent gets its skills with its process.
  if (!engine.agent) await placeSkills({ config: { permissions: "full" } }, skills, runDir);
  replacePlain(
    placeInRunDir(contextPath, runDir),
    engine.agent ? context : addSkills(context, skills, runDir),
  );
  const stateDir = getStateDir(paths, stateOwner, engine);
  const box = addServerPrograms(variables.servers, await planBox({ ...place, stateDir }), env.PATH ?? "");
  if (box !== null) env.HOME = box.home;
  if (box !== null && box.network !== "host") Object.assign(env, buildRelayVariables(box.network.port));
  return {
    ...briefing,
    runDir,
    stateDir,
    box,
    env,
    ...variables,
    skills,
    tools: buildTools(env, engine),
    rights,
  };
}

// A program reads its context instead of a prompt.
function addSkills(context: string, skills: readonly RunSkill[], runDir: string): string {
  if (skills.length === 0) return context;
  const list = skills.map(({ name, description }) => ({
    ...{ name, description, path: join(getSkillsDir(runDir), name, "SKILL.md") },
  }));
  return `${JSON.stringify({ ...JSON.parse(context), skills: list }, null, 2)}\n`;
}

// The service's tools for engines with MCP. The run's token decides which tools it sees.
function buildTools(env: Record<string, string>, engine: Engine): EngineRun["tools"] {
  if (!engine.agent) return null;
  return { url: `${env.SVC_URL}/mcp`, tokenVariable: "SVC_TOKEN", token: env.SVC_TOKEN ?? "" };
}
