import { isReachable } from "../../store/events/health.ts";
import type { Deps } from "../call/services.ts";

/** Returns "ready", or the reason why the service accepts no work. */
export async function readiness(
  { db, lifecycle, stages, owner }: Deps<"db" | "lifecycle" | "stages" | "owner">,
): Promise<string> {
  if (lifecycle.state !== "ready") return lifecycle.state;
  if (!stages().every((stage) => stage.well)) return "a background stage is stalled (see the log)";
  if (owner !== null && owner.fault !== null) return owner.fault;
  return await isReachable(db) ? "ready" : "database unreachable";
}
