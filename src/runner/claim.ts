import { cutToBytes } from "../base/bytes.ts";
import { createId } from "../base/id.ts";
import { createLogger } from "../base/log.ts";
import type { DataPaths } from "../base/paths.ts";
import { VERSION } from "../base/version.ts";
import {
  BOX_FAULT_MAX_BYTES,
  CLAIM_WAIT_MAX_MS,
  RUNNER_PROTOCOL,
  type RunnerClaim,
  type RunnerClaimAnswer,
} from "../domain/workers/runner.ts";
import type { Catalog } from "../engine/catalog.ts";
import { findAdapter } from "../engine/kinds.ts";
import type { ServiceAnswer, ServiceClient } from "./service_client.ts";

const log = createLogger("runner");

export const CLAIM_PATH = "/api/runners/claim";
const LAST_CLAIM_MAX_MS = 2_000;

interface ClaimOptions {
  engines: Catalog;
  paths: DataPaths;
  maxRuns: number;
  place: string;
  /** Why this machine cannot set up a box, or null. */
  boxFault: string | null;
  /** Whether this machine has git. */
  hasGit: boolean;
}

/** Builds a claim request of this process. `epoch` is the last one from the service, or 0 after a start. */
export function buildClaim(
  { engines, paths, maxRuns, place, boxFault, hasGit }: ClaimOptions,
  process: string,
  epoch: number,
): RunnerClaim {
  return {
    request_id: createId(),
    process,
    place,
    epoch,
    protocol: RUNNER_PROTOCOL,
    version: VERSION,
    work_root: paths.root,
    max_runs: maxRuns,
    engines: engines.names.flatMap((name) => {
      const engine = engines.find(name);
      if (engine === null) return [];
      const adapter = findAdapter(engine.kind);
      const gateways = adapter?.driver === "agent" ? [...adapter.gateways ?? []] : [];
      return [{ name, agent: engine.agent, gateways }];
    }),
    box: boxFault === null,
    box_fault: cutToBytes(boxFault ?? "", BOX_FAULT_MAX_BYTES),
    repo: hasGit,
    wait_ms: CLAIM_WAIT_MAX_MS,
  };
}

/** Repeats the claim that a stop interrupted, in case the service gave it a run. Returns null when the service does not answer. */
export async function repeatClaim(
  link: ServiceClient,
  request: RunnerClaim,
): Promise<ServiceAnswer<RunnerClaimAnswer> | null> {
  try {
    return await link.post(CLAIM_PATH, { ...request, wait_ms: 0 }, { timeoutMs: LAST_CLAIM_MAX_MS });
  } catch (error) {
    log.debug("Cannot find out whether the service had a run for this runner: {error}", { error });
    return null;
  }
}
