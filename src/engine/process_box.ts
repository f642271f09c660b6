import { basename, dirname, join } from "node:path";
import { isWithin } from "../base/paths.ts";
import type { EngineRun } from "./engine.ts";
import type { Box } from "./process/box.ts";
import type { AgentCommand } from "./protocol/adapter.ts";
import { getInputDir } from "./run_dir.ts";

/** Adapts the box of a run to a process, whose directory may be another one. The agent cannot change the files of its command. */
export function buildProcessBox(run: EngineRun, dir: string, { files = [] }: AgentCommand): Box | null {
  if (run.box === null) return null;
  // The box has real paths, and the run may have others.
  const { runDir, stateDir } = run.box;
  const real = join(dirname(runDir), basename(dir));
  const resolve = (path: string) =>
    [[dir, real], [run.stateDir, stateDir]].reduce(
      (found, [from, to]) => from && to && isWithin(found, from) ? to + found.slice(from.length) : found,
      path,
    );
  const input = getInputDir(real);
  const inState = files.map(({ path }) => resolve(path)).filter((path) => !isWithin(path, input));
  return { ...run.box, runDir: real, fixed: [input, ...inState] };
}
