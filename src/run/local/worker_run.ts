// Runs one execution of a worker, in the service or on a runner.
import type { Verify } from "../../domain/work/command.ts";
import type { McpServers } from "../../domain/workers/mcp_server.ts";
import type { RunIdentity } from "../../domain/call/run_identity.ts";
import type { Catalog } from "../../engine/catalog.ts";
import { buildFailedOutcome, type Engine, type EngineOutcome } from "../../engine/engine.ts";
import { type EngineRunOptions, runEngine, type RunReports } from "./engine_run.ts";
import type { Grant } from "../run_token.ts";
import type { Briefing } from "../launch_options.ts";
import type { RunOutcome } from "../recorder.ts";
import type { Workspace } from "./workspaces.ts";
import type { RunSkill } from "../../engine/process/skill_files.ts";
import { findWorkDirProblem } from "./work_dir.ts";

interface RunOrder {
  /** The run, with the name of its engine. */
  execution: RunIdentity & { engine: string; instruction: string };
  workDir: string;
  /** The worktree of the run, or null. */
  workspace?: Workspace | null;
  /** The MCP servers of the worker. */
  mcp: McpServers;
  /** The skills of the worker. */
  skills?: readonly RunSkill[];
  /** The check of the work, or null. */
  verify: Verify | null;
  /** Called, like `brief`, only for an engine outside this process. */
  grant: () => Promise<Grant>;
  brief: (engine: Engine) => Promise<Briefing>;
  signal: AbortSignal;
  /** Returns the listeners of the run. */
  listen: (engine: Engine) => RunReports;
}

/** Runs an execution to its outcome. A failed run is an outcome. Throws when the run cannot be prepared. */
export async function runWorker(
  options: EngineRunOptions & { engines: Pick<Catalog, "find">; isRunner?: boolean },
  { execution, workDir, workspace = null, mcp, skills = [], verify, grant, brief, signal, listen }: RunOrder,
): Promise<RunOutcome> {
  const engine = options.engines.find(execution.engine);
  if (engine === null) {
    return buildFailedOutcome("spawn_failed", `Cannot start: no engine is called ${execution.engine}`);
  }
  // The engine may have changed since the write.
  const fault = engine.findServerFault(mcp);
  if (fault !== null) {
    return buildFailedOutcome("setup", `Cannot give the run the worker's MCP servers: ${fault}.`);
  }
  if (skills.length > 0 && engine.skillFault !== null) {
    return buildFailedOutcome("setup", `Cannot give the run the worker's skills: ${engine.skillFault}.`);
  }
  const problem = workspace === null ? findWorkDirProblem(workDir, options.paths, options.isRunner) : null;
  if (problem !== null) {
    return buildFailedOutcome("spawn_failed", `Cannot use the work directory ${workDir}: ${problem}`);
  }
  return await runEngine(options, {
    identity: execution,
    engine,
    stateOwner: execution.worker_id,
    workDir,
    workspace,
    skills,
    instruction: execution.instruction,
    schema: null,
    verify,
    signal,
    grant,
    brief: () => brief(engine),
    opening: `[${engine.name} starts in ${workDir}, attempt ${execution.attempt}]`,
    closing: formatLastLine,
    reports: listen(engine),
  });
}

function formatLastLine(outcome: EngineOutcome): string {
  if (outcome.status === "completed") return "[completed]";
  return `[failed: ${outcome.failure}${outcome.error === "" ? "" : `, ${outcome.error}`}]`;
}
