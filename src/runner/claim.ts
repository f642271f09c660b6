import { newId } from "../base/id.ts";
import { logger } from "../base/log.ts";
import type { DataPaths } from "../base/paths.ts";
import { VERSION } from "../base/version.ts";
import {
  CLAIM_WAIT_MAX_MS,
  RUNNER_PROTOCOL,
  type RunnerClaim,
  type RunnerClaimed,
} from "../domain/workers/runner.ts";
import type { Catalog } from "../engine/catalog.ts";
import type { Answered, Link } from "./service_client.ts";

const log = logger("runner");

export const CLAIM_PATH = "/api/runners/claim";
const LAST_CLAIM_MAX_MS = 2_000;

/** What a runner says of itself with a claim. */
interface Claiming {
  engines: Catalog;
  paths: DataPaths;
  maxRuns: number;
  place: string;
}

/** A new claim request of the process that runs as this runner, with the epoch that the service answered last, 0 after a start. */
export function claimOf(
  { engines, paths, maxRuns, place }: Claiming,
  process: string,
  epoch: number,
): RunnerClaim {
  return {
    request_id: newId(),
    process,
    place,
    epoch,
    protocol: RUNNER_PROTOCOL,
    version: VERSION,
    work_root: paths.root,
    max_runs: maxRuns,
    engines: engines.names.flatMap((name) => {
      const engine = engines.find(name);
      return engine === null ? [] : [{ name, agent: engine.agent }];
    }),
    wait_ms: CLAIM_WAIT_MAX_MS,
  };
}

/** Asks once more for what the service may have given to a claim whose answer was cut off by a stop. Null when it does not say. */
export async function claimedMeanwhile(
  link: Link,
  request: RunnerClaim,
): Promise<Answered<RunnerClaimed> | null> {
  try {
    return await link.post(CLAIM_PATH, { ...request, wait_ms: 0 }, { timeoutMs: LAST_CLAIM_MAX_MS });
  } catch (error) {
    log.debug("The service does not say whether it had a run for this runner: {error}", { error });
    return null;
  }
}
