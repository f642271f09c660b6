import { join } from "node:path";
import { logger } from "../base/log.ts";
import { sweep } from "../engine/isolation.ts";

const log = logger("runner");

/** Which runs this machine has begun and not ended: one small file each, so that a runner that died leaves no process behind. */
export class Leftovers {
  readonly #folder: string;

  constructor(root: string) {
    this.#folder = join(root, "open");
  }

  /** Before a run begins. */
  begin(executionId: string, runId: string): void {
    Deno.mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    Deno.writeTextFileSync(join(this.#folder, executionId), runId, { mode: 0o600 });
  }

  /** After its processes have ended. */
  end(executionId: string): void {
    try {
      Deno.removeSync(join(this.#folder, executionId));
    } catch {
      // It is gone already.
    }
  }

  /** Ends every process of the runs that a runner before this one has left (contract 18). */
  async sweep(): Promise<void> {
    const found = new Map<string, string>();
    try {
      for (const { name } of Deno.readDirSync(this.#folder)) {
        found.set(name, Deno.readTextFileSync(join(this.#folder, name)));
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    if (found.size === 0) return;
    const ended = await sweep(new Set(found.values()));
    log.warning("{runs} runs were left by the runner before; {ended} of their processes were still there", {
      runs: found.size,
      ended,
    });
    for (const executionId of found.keys()) this.end(executionId);
  }
}
