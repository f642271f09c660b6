import { api, ask, type Schemas } from "../../live/api.ts";

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
