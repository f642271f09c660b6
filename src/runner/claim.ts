import { newId } from "../base/id.ts";
import type { DataPaths } from "../base/paths.ts";
import { VERSION } from "../base/version.ts";
import { CLAIM_WAIT_MAX_MS, RUNNER_PROTOCOL, type RunnerClaim } from "../domain/runner.ts";
import type { Catalog } from "../engine/catalog.ts";

/** What a runner says of itself with a claim. */
interface Claiming {
  engines: Catalog;
  paths: DataPaths;
  maxRuns: number;
  place: string;
}

/** A claim that nobody has sent yet, of the process that runs as this runner, with the epoch that it was told, 0 after a start, for one run and `more` short ones (contract 18.6). */
export function claimOf(
  { engines, paths, maxRuns, place }: Claiming,
  process: string,
  { epoch, more }: { epoch: number; more: number },
): RunnerClaim {
  return {
    request_id: newId(),
    more: Array.from({ length: more }, newId),
    process,
    place,
    epoch,
    protocol: RUNNER_PROTOCOL,
    version: VERSION,
    work_root: paths.root,
    max_runs: maxRuns,
    engines: engines.names.flatMap((name) => {
      const engine = engines.find(name);
      return engine === null ? [] : [{ name, agent: engine.agent, external: engine.external }];
    }),
    wait_ms: CLAIM_WAIT_MAX_MS,
  };
}
