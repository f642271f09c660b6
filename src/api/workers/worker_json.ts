import { stateDirOf } from "../../base/paths.ts";
import { remembered } from "../../base/memoize.ts";
import { type Json, jsonOf, valueOf } from "../../domain/call/json.ts";
import type { Worker } from "../../domain/workers/worker.ts";
import type { Deps } from "../call/services.ts";

// In a JSON text a quote within a value is escaped, so this is a member of an object.
const ENGINES = /"engine":"([^"]*)"/g;
// Programs ask for the same page again and again.
const PAGES_REMEMBERED_MAX = 32;
const REMEMBERED_MAX_CHARACTERS = 64 * 1024;
const rememberedEngines = remembered(PAGES_REMEMBERED_MAX, enginesIn);

function enginesIn(json: string): string[] {
  return [...new Set([...json.matchAll(ENGINES)].map(([, name = ""]) => name))];
}

/**
 * Workers as they are shown: `unavailable` in the place of `idle` where the engine cannot be used (contract 3, Worker). Whether it can
 * be is no row, so the text that the database made is only looked into when one of its engines cannot.
 */
export async function shownWorkers<T extends Worker | Worker[]>(
  { engines, paths }: Deps<"engines" | "paths">,
  json: Json<T>,
): Promise<Json<T>> {
  const names = json.length > REMEMBERED_MAX_CHARACTERS ? enginesIn(json) : rememberedEngines(json);
  const doubtful = new Set<string>();
  for (const name of names) {
    if (!(await engines.probeOne(name, () => null)).usable) doubtful.add(name);
  }
  if (doubtful.size === 0) return json;
  const value = valueOf<Worker | Worker[]>(json);
  for (const worker of [value].flat()) {
    // Whether a runner can use its engine, the runner says.
    if (worker.runs_on.length > 0) continue;
    if (worker.status !== "idle" || !doubtful.has(worker.engine)) continue;
    // A login may be the worker's own.
    const { usable } = await engines.probeOne(worker.engine, (one) => stateDirOf(paths, worker.id, one));
    if (!usable) worker.status = "unavailable";
  }
  return jsonOf(value) as Json<T>;
}
