import { getStateDir } from "../../base/paths.ts";
import { invalid } from "../../domain/call/error.ts";
import type { EngineNeeds } from "../../domain/workers/engine_task.ts";
import { type IsolationConfig, resolveBox } from "../../domain/workers/isolation.ts";
import type { RateLimit } from "../../domain/workers/rate_limit.ts";
import type { Worker } from "../../domain/workers/worker.ts";
import { chooseEngine, findFallbackFault, listFallbacks } from "../../engine/fallback.ts";
import type { Deps } from "../call/services.ts";

/**
 * Throws `invalid_request` when no engine may replace the worker's, or one could not do its runs. `field` is the path
 * of the worker in the request, with its dot.
 */
export function checkFallback(
  { engines, isolation: { config } }: Deps<"engines" | "isolation">,
  worker: Pick<Worker, "fallback" | "engine" | "isolation" | "runs_on" | "verify" | "env" | "mcp"> & {
    skills: readonly unknown[];
  },
  field = "",
): void {
  if (!worker.fallback) return;
  const path = `${field}fallback`;
  if (worker.runs_on.length > 0) {
    throw invalid(path, "cannot be set for a worker on runners, which keeps its engine. Remove runs_on.");
  }
  const own = engines.find(worker.engine);
  if (own === null) return;
  const others = listFallbacks(engines, own);
  if (others.length === 0) {
    throw invalid(path, `needs an engine in engines.${own.name}.fallback of the configuration`);
  }
  const needs = buildNeeds(worker, config);
  for (const other of others) {
    const fault = findFallbackFault(own, other, needs);
    if (fault === null) continue;
    throw invalid(path, `cannot be set: ${fault}. Remove ${other.name} from engines.${own.name}.fallback.`);
  }
}

/** Returns the engine that would replace the worker's in a run now, or null. */
export function findReplacement(
  { engines, paths, isolation: { config } }: Deps<"engines" | "paths" | "isolation">,
  worker: Worker,
  limits: readonly RateLimit[],
  now: number,
): string | null {
  const task = {
    ...buildNeeds(worker, config),
    worker_id: worker.id,
    engine: worker.engine,
    fallback: Number(worker.fallback && worker.runs_on.length === 0),
    acted_engine: "",
    unusable_engines: "[]",
  };
  const byEngine = new Map(limits.map((limit) => [limit.engine, limit]));
  const { engine, fallback_from } = chooseEngine({ engines, paths }, task, byEngine, now);
  return fallback_from === "" ? null : engine;
}

/** Whether the worker has an engine that can start now and may replace its own. Reads no database, for lists. */
export function hasUsableFallback({ engines, paths }: Deps<"engines" | "paths">, worker: Worker): boolean {
  const own = engines.find(worker.engine);
  return worker.fallback && own !== null &&
    listFallbacks(engines, own).some((other) =>
      other.findProblem(getStateDir(paths, worker.id, other)) === null
    );
}

function buildNeeds(
  { isolation, env, mcp, skills, verify }: Pick<Worker, "isolation" | "env" | "mcp" | "verify"> & {
    skills: readonly unknown[];
  },
  config: IsolationConfig,
): EngineNeeds {
  return {
    boxed: Number(resolveBox(isolation, config) !== null),
    env_names: JSON.stringify(Object.keys(env)),
    mcp: JSON.stringify(mcp),
    has_skills: Number(skills.length > 0),
    has_commands: Number(verify !== null),
  };
}
