import { api, load, type Schemas } from "../../live/api.ts";
import { filterByLabels, readRunners } from "../../live/runners.ts";

/** Lists the usable engines, the default one first. */
export function listUsable(engines: readonly Schemas["Engine"][]): string[] {
  return engines.filter(({ usable }) => usable)
    .toSorted((one, other) => Number(other.default) - Number(one.default))
    .map(({ name }) => name);
}

/** Reads the names of the engines that a worker can use: of the service, or of the runners with these labels. */
export async function readEngineNames(labels: readonly string[], signal: AbortSignal): Promise<string[]> {
  if (labels.length === 0) return listUsable(await load(api.GET("/api/engines", { signal })));
  const runners = filterByLabels(await readRunners(signal), labels);
  return [...new Set(runners.flatMap(({ engines }) => engines))].toSorted();
}
