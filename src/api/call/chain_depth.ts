import { conflict } from "../../domain/call/error.ts";
import type { Call } from "./call.ts";
import type { Deps } from "./services.ts";

/**
 * Counts the agent tasks before the caller's next one, at least `afterParents` for a task that waits for others. Throws `conflict` above
 * `limits.max_chain_depth`.
 */
export async function checkChainDepth(
  { limits, runLimits }: Deps<"limits" | "runLimits">,
  call: Pick<Call, "caller">,
  action: string,
  afterParents = 0,
): Promise<number> {
  const { run } = call.caller;
  const depth = run === null ? 0 : Math.max(run.depth + 1, afterParents);
  if (depth <= limits.max_chain_depth) return depth;
  await runLimits.recordLimit(call, "chain_depth", limits.max_chain_depth);
  throw conflict(
    `Cannot ${action}: it would be number ${depth} in a chain of tasks by agents ` +
      `(limits.max_chain_depth is ${limits.max_chain_depth})`,
  );
}
