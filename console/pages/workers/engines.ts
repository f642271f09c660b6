import { api, ask } from "../../live/api.ts";

/** Names of the engines whose program is here and can be used now. */
export async function usableEngines(signal: AbortSignal): Promise<string[]> {
  const { checks } = await ask(api.GET("/api/system/doctor", { signal }));
  const detail = checks.find(({ name }) => name === "engines")?.detail ?? "";
  return /usable: ([^;]*)/.exec(detail)?.[1]?.split(",").map((name) => name.trim().split(" ")[0] ?? "")
    .filter(Boolean) ?? [];
}
