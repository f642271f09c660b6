// Chooses the engine of a run: the worker's, or another one that replaces it.
import { type DataPaths, getStateDir } from "../base/paths.ts";
import type { EngineNeeds, EngineTask } from "../domain/workers/engine_task.ts";
import type { McpServers } from "../domain/workers/mcp_server.ts";
import { isLongLimit, type RateLimit } from "../domain/workers/rate_limit.ts";
import type { Catalog } from "./catalog.ts";
import type { Engine } from "./engine.ts";

export interface EngineChoice {
  engine: string;
  /** The worker's engine when another one replaces it, else "". */
  fallback_from: string;
}

/**
 * Chooses the worker's engine, unless it has a long rate limit or cannot start. Then the first engine replaces it that can start, meets the
 * needs of the run and has no limit. When none does, the worker's engine keeps the run. An attempt stays with the engine that has acted.
 */
export function chooseEngine(
  { engines, paths }: { engines: Catalog; paths: DataPaths },
  task: EngineTask,
  limits: ReadonlyMap<string, RateLimit>,
  now: number,
): EngineChoice {
  const own = engines.find(task.engine);
  const asOwn = { engine: own?.name ?? task.engine, fallback_from: "" };
  if (own === null || task.fallback === 0 || task.acted_engine === own.name) return asOwn;
  const limit = limits.get(own.name);
  const unusable = JSON.parse(task.unusable_engines) as string[];
  const canStart = (engine: Engine) =>
    !unusable.includes(engine.name) &&
    engine.findProblem(getStateDir(paths, task.worker_id, engine)) === null;
  const isOut = limit !== undefined && isLongLimit(limit, own.config.fallback_after, now) || !canStart(own);
  const others = listFallbacks(engines, own).filter((other) => findFallbackFault(own, other, task) === null);
  const started = others.find(({ name }) => name === task.acted_engine);
  const next = started ?? (isOut ? others.find((one) => !limits.has(one.name) && canStart(one)) : undefined);
  return next === undefined ? asOwn : { engine: next.name, fallback_from: own.name };
}

/** Lists the engines that the configuration names as fallback, best first. */
export function listFallbacks(engines: Catalog, own: Engine): Engine[] {
  return own.config.fallback.flatMap((name) => engines.find(name) ?? []);
}

export const NO_NEEDS: EngineNeeds = { boxed: 0, env_names: "[]", mcp: "{}", has_skills: 0, has_commands: 0 };

const PERMISSIONS: readonly string[] = ["read", "edit", "ask", "full"];

// Goose has no mode between `read` and `full` (docs/reference/engines.md).
function rankPermissions({ kind, config: { permissions } }: Engine): number {
  // A program of kind `command` is not restricted, and Goose can only be restricted to `read`.
  const isFull = kind === "command" || kind === "goose" && permissions !== "read";
  return PERMISSIONS.indexOf(isFull ? "full" : permissions);
}

// An ACP agent asks a person about everything that its permissions do not allow.
function asksPeople({ kind, config: { permissions } }: Engine): boolean {
  return permissions === "ask" || kind === "acp" && permissions !== "full";
}

/** Returns why `other` cannot replace `own` in runs with these needs, or null. */
export function findFallbackFault(own: Engine, other: Engine, needs: EngineNeeds): string | null {
  const { name, config } = other;
  if (rankPermissions(other) > rankPermissions(own)) {
    return `${name} has wider permissions than ${own.name}`;
  }
  if (asksPeople(own) && !asksPeople(other)) {
    return `${name} cannot ask people for permission, as ${own.name} does`;
  }
  if (needs.boxed === 1 && other.agent && config.state === "shared") {
    return `${name} cannot run in a box, because engines.${name}.state is shared`;
  }
  if (needs.has_commands === 1 && JSON.stringify(config.shell) !== JSON.stringify(own.config.shell)) {
    return `${name} would run gates and checks in another shell than ${own.name}`;
  }
  if (needs.has_commands === 1 && other.kind === "command" && config.shell === undefined) {
    return `${name} runs no gates and checks without engines.${name}.shell`;
  }
  const fault = other.findServerFault(JSON.parse(needs.mcp) as McpServers);
  if (fault !== null) return fault;
  if (needs.has_skills === 1 && other.skillFault !== null) return other.skillFault;
  const names = JSON.parse(needs.env_names) as string[];
  const taken = names.find((variable) => other.adapterVariables.includes(variable));
  return taken === undefined ? null : `${name} sets the variable ${taken} of the worker itself`;
}
