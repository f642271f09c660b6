// The private directory of one run. `input` is only written by the service, and a box has it read-only.
import { join } from "node:path";

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

/** Creates the private directory of a run. */
export function makeRunDir(runDir: string): void {
  for (const path of [getInputDir(runDir), getOutputDir(runDir), getTempDir(runDir)]) {
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
  }
}

/** Creates the TMPDIR of a run again, if an agent has removed it. Throws when the whole private directory is missing. */
export function restoreTempDir(runDir: string): void {
  try {
    Deno.mkdirSync(getTempDir(runDir), { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}
