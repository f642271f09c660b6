import { api, buildQuery, load, loadAll, type Schemas } from "../../live/api.ts";
import { filterByLabels } from "../../live/runners.ts";

/** Lists the usable engines, the default one first. */
export function listUsable(engines: readonly Schemas["Engine"][]): string[] {
  return engines.filter(({ usable }) => usable)
    .toSorted((one, other) => Number(other.default) - Number(one.default))
    .map(({ name }) => name);
}

/** Reads the names of the engines that a worker can use: of the service, or of the runners with these labels. */
export async function readEngineNames(labels: readonly string[], signal: AbortSignal): Promise<string[]> {
  if (labels.length === 0) return listUsable(await load(api.GET("/api/engines", { signal })));
  const all = await loadAll((cursor) =>
    api.GET("/api/runners", { params: { query: buildQuery({}, cursor) }, signal })
  );
  const runners = filterByLabels(all, labels);
  return [...new Set(runners.flatMap(({ engines }) => engines))].toSorted();
}
