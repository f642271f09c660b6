import { join } from "node:path";
import { createLogger } from "../base/log.ts";
import { sweep } from "./process/isolation.ts";
import { removeRunDir } from "./run_dir.ts";

const log = createLogger("engine");

/**
 * Ends the processes that an earlier service left open. Each directory below `runs` is named after the mark of its process. Returns a
 * function that removes these directories, which may take minutes. Neither throws.
 */
export async function endOpenProcesses(runs: string): Promise<() => Promise<void>> {
  try {
    const marks = new Set((await Array.fromAsync(Deno.readDir(runs))).map(({ name }) => name));
    if (marks.size > 0) await sweep(marks);
    return async () => {
      for (const mark of marks) await removeRunDir(join(runs, mark));
    };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) log.warning("Cannot list {runs}: {error}", { runs, error });
    return () => Promise.resolve();
  }
}
