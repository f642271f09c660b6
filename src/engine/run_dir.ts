// The private directory of one run. `input` is only written by the service, and a box has it read-only.
import { dirname, join } from "node:path";
import type { Place } from "../base/files/open_directory.ts";
import { makePlainDir } from "../base/files/plain_file.ts";
import { removeTree } from "../base/files/tree_removal.ts";
import { createLogger } from "../base/log.ts";

const log = createLogger("engine");

/** Returns the directory for the files that the service writes for a run: token, context, settings of its engine. */
export function getInputDir(runDir: string): string {
  return join(runDir, "input");
}

/** Returns the directory for the files that a run writes for the service, such as its usage. */
export function getOutputDir(runDir: string): string {
  return join(runDir, "output");
}

/** Returns the TMPDIR of a run. */
export function getTempDir(runDir: string): string {
  return join(runDir, "tmp");
}

/** Returns the place of a path in a run's private directory. An agent can replace that directory, but not the one of all runs. */
export function placeInRunDir(path: string, runDir: string): Place {
  return { root: dirname(runDir), path };
}

/** Creates the private directory of a run. Throws UnsafePathError. */
export function makeRunDir(runDir: string): void {
  Deno.mkdirSync(dirname(runDir), { recursive: true, mode: 0o700 });
  for (const path of [getInputDir(runDir), getOutputDir(runDir), getTempDir(runDir)]) {
    makePlainDir(placeInRunDir(path, runDir));
  }
}

/** Creates the TMPDIR of a run again, if an agent has removed it. Throws UnsafePathError. */
export function restoreTempDir(runDir: string): void {
  makePlainDir(placeInRunDir(getTempDir(runDir), runDir));
}

/** Removes the private directory of a run. Never throws. */
export async function removeRunDir(runDir: string): Promise<void> {
  await removeTree(placeInRunDir(runDir, runDir)).catch((error) => {
    log.warning("Cannot remove the files of a run; the next start tries again: {error}", { error });
  });
}
