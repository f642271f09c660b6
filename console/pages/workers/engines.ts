import { api, ask, type Schemas } from "../../live/api.ts";

/** Names of the engines that can be used now, the service's default first. */
export async function usableEngines(signal: AbortSignal): Promise<string[]> {
  const engines: Schemas["Engine"][] = await ask(api.GET("/api/engines", { signal }));
  return engines.filter(({ usable }) => usable)
    .sort((one, other) => Number(other.default) - Number(one.default))
    .map(({ name }) => name);
}
