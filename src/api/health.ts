import { isReachable } from "../store/health.ts";
import type { Needs } from "./parts.ts";

/** Whether the service takes work: "ready", or why not (contract 5.2). */
export async function readiness(
  { db, lifecycle, stages }: Needs<"db" | "lifecycle" | "stages">,
): Promise<string> {
  if (lifecycle.state !== "ready") return lifecycle.state;
  if (!stages().every((stage) => stage.well)) return "a background stage is stalled; see the log";
  return await isReachable(db) ? "ready" : "database unreachable";
}
