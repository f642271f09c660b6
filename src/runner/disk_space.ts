import { join } from "node:path";
import { type Clock, sleep } from "../base/clock.ts";
import { createLogger } from "../base/log.ts";

const log = createLogger("runner");

const PROBE_BYTES = 64 * 1024;
const PAUSE_MS = 2_000;

/**
 * Resolves when runs can write below `root`, or when `signal` aborts. A machine with a full disk would fail every task (contract 18.7).
 */
export async function waitForSpace(root: string, clock: Clock, signal: AbortSignal): Promise<void> {
  for (let isReported = false; !signal.aborted; isReported = true) {
    const problem = findProblem(root);
    if (problem === "") return;
    if (!isReported) {
      log.error("Cannot write into {root}, so this runner claims nothing: {problem}", { root, problem });
    }
    await sleep(clock, PAUSE_MS, signal);
  }
}

function findProblem(root: string): string {
  const path = join(root, `.${crypto.randomUUID()}.probe`);
  try {
    Deno.writeFileSync(path, new Uint8Array(PROBE_BYTES), { mode: 0o600, createNew: true });
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    try {
      Deno.removeSync(path);
    } catch {
      // The file was not created.
    }
  }
}
