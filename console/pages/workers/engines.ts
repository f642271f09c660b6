import { api, ask, type Schemas } from "../../live/api.ts";
import { readRunners, withLabels } from "../../live/runners.ts";

/** Names of the engines that can be used now, the service's default first. */
export async function usableEngines(signal: AbortSignal): Promise<string[]> {
  return byUse(await ask(api.GET("/api/engines", { signal })));
}

/** The same of engines that were read. */
export function byUse(engines: readonly Schemas["Engine"][]): string[] {
  return engines.filter(({ usable }) => usable)
    .toSorted((one, other) => Number(other.default) - Number(one.default))
    .map(({ name }) => name);
}

/** Names of the engines that runners with all of these labels have. */
export async function enginesOn(labels: readonly string[], signal: AbortSignal): Promise<string[]> {
  const runners = withLabels(await readRunners(signal), labels);
  return [...new Set(runners.flatMap(({ engines }) => engines))].toSorted();
}
