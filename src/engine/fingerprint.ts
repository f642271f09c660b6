import type { EngineRun } from "./engine.ts";
import type { AgentSetup } from "./launch.ts";
import { listMountsBelow } from "./process/mounts.ts";
import { findProgram } from "./process/process.ts";
import { GATEWAY_KEY } from "./protocol/adapter.ts";
import { RUN_VARIABLES } from "./turn_files.ts";

/** Returns null when the program or directory is missing. The start of the next process then reports the problem. */
export function findFingerprint(setup: AgentSetup, run: EngineRun): string | null {
  try {
    return buildFingerprint(setup, run);
  } catch {
    return null;
  }
}

/** Builds a text that is equal for two runs if one process can do both. The service sends everything else with each turn. */
function buildFingerprint({ config, machine, adapter }: AgentSetup, run: EngineRun): string {
  const { env, workDir, stateDir, extraArgs, runDir, rights, servers, skills, box } = run;
  const program = findProgram(config.command || adapter.program, machine.path);
  const changing = [...RUN_VARIABLES, GATEWAY_KEY, "SVC_RUN_ID", "SVC_CONTEXT_FILE", "TMPDIR"];
  const kept = Object.entries(env).filter(([name, value]) => !changing.includes(name) && value !== runDir);
  const changedAt = Deno.statSync(program).mtime?.getTime() ?? 0;
  // Includes the identity of the directory, because the path may lead to another directory later.
  const { dev, ino } = Deno.statSync(workDir);
  // A process does not see a file system that is mounted in its directory later.
  const mounts = listMountsBelow(Deno.realPathSync(workDir));
  const place = [workDir, dev, ino, mounts, stateDir];
  // The run directory belongs to one process.
  const boxed = box && { ...box, runDir: "", fixed: [] };
  const digests = skills.map(({ digest }) => digest);
  return JSON.stringify([
    ...[program, changedAt, ...place, extraArgs, rights, servers, digests, kept.sort(), boxed],
  ]);
}
