import { stateDirOf } from "../../base/paths.ts";
import { remembered } from "../../base/memoize.ts";
import { type Json, jsonOf, valueOf } from "../../domain/call/json.ts";
import type { Worker } from "../../domain/workers/worker.ts";
import type { Deps } from "../call/services.ts";

// Quotes in JSON values are escaped, so a match is always a member.
const ENGINES = /"engine":"([^"]*)"/g;
// Programs read the same page repeatedly.
const PAGES_REMEMBERED_MAX = 32;
const REMEMBERED_MAX_CHARACTERS = 64 * 1024;
const findEnginesCached = remembered(PAGES_REMEMBERED_MAX, findEngines);

function findEngines(json: string): string[] {
  return [...new Set([...json.matchAll(ENGINES)].map(([, name = ""]) => name))];
}

/**
 * Replaces `idle` with `unavailable` for workers whose engine is unusable. No row holds this, so the JSON of the
 * database is parsed only when one of its engines is unusable.
 */
export async function shownWorkers<T extends Worker | Worker[]>(
  { engines, paths }: Deps<"engines" | "paths">,
  json: Json<T>,
): Promise<Json<T>> {
  const names = json.length > REMEMBERED_MAX_CHARACTERS ? findEngines(json) : findEnginesCached(json);
  const unusable = new Set<string>();
  for (const name of names) {
    if (!(await engines.probeOne(name, () => null)).usable) unusable.add(name);
  }
  if (unusable.size === 0) return json;
  const value = valueOf<Worker | Worker[]>(json);
  for (const worker of [value].flat()) {
    // Runners report their own engines.
    if (worker.runs_on.length > 0) continue;
    if (worker.status !== "idle" || !unusable.has(worker.engine)) continue;
    // A worker may have a separate engine login.
    const { usable } = await engines.probeOne(worker.engine, (one) => stateDirOf(paths, worker.id, one));
    if (!usable) worker.status = "unavailable";
  }
  return jsonOf(value) as Json<T>;
}
