import { invalid } from "../../domain/call/error.ts";
import type { Resources } from "../../domain/workers/resources.ts";
import { NO_HOME } from "../../domain/workers/runner.ts";
import type { Call } from "../call/call.ts";
import { checkMaySet } from "../work/task_commands.ts";

/** The fields that decide where the runs of a worker are. Each needs the scope write:commands. */
const FIELDS = ["runs_on", "home", "resources"] as const;

interface Elsewhere {
  runs_on: readonly string[];
  home: string;
  resources: Resources | null;
}

/**
 * Checks where the runs of a worker are after a change. `workDir` is a requested work directory, or "". Throws `forbidden` for a
 * caller who cannot set these fields, and `invalid_request` for settings of runners without `runs_on`.
 */
export function checkElsewhere(
  call: Call,
  { changed, wanted, workDir, path = "" }: {
    changed: readonly string[];
    wanted: Elsewhere;
    workDir: string;
    /** Prefix of field names in errors. */
    path?: string;
  },
): void {
  for (const name of FIELDS) if (changed.includes(name)) checkMaySet(call, name);
  const isHomeless = wanted.home === NO_HOME;
  if (wanted.runs_on.length === 0) {
    const words = "needs the labels of a runner. Set runs_on, too, or";
    if (isHomeless) throw invalid(`${path}home`, `none ${words} set home to "".`);
    if (wanted.resources !== null) throw invalid(`${path}resources`, `${words} set resources to null.`);
  }
  if (isHomeless && workDir !== "") {
    throw invalid(
      `${path}home`,
      "cannot be none for a worker with a work_dir, because each run gets a new directory. Create a worker without work_dir.",
    );
  }
}

/** Returns whether a caller changes the home: to none, or back. The service sets other homes, which a caller may only repeat. */
export function setsHome(before: string, wanted: string): boolean {
  return wanted !== before && (wanted === NO_HOME || wanted === "" && before === NO_HOME);
}
