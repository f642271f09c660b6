import { invalid } from "../../domain/call/error.ts";
import type { WorkerUpdate } from "../../domain/workers/worker.ts";
import { findReservedFlag } from "../../engine/registry.ts";
import { splitArgs } from "../../engine/arguments.ts";
import type { Catalog } from "../../engine/catalog.ts";

/**
 * Throws `invalid_request` for an engine that is not known, and for arguments that are not a command line or that the service itself
 * decides. `prefix` stands before the field in the message.
 */
export function checkEngines(
  engines: Catalog,
  input: Pick<WorkerUpdate, "engine" | "engine_args" | "runs_on">,
  prefix = "",
): void {
  const known = engines.names;
  // An engine may be one that only a runner has (contract 18).
  const isElsewhere = (input.runs_on ?? []).length > 0;
  if (input.engine !== undefined && engines.find(input.engine) === null && !isElsewhere) {
    throw invalid(
      `${prefix}engine`,
      `no engine is called ${JSON.stringify(input.engine)}; known: ${known.join(", ")}`,
    );
  }
  for (const [name, text] of Object.entries(input.engine_args ?? {})) {
    const path = `${prefix}engine_args.${name}`;
    if (!known.includes(name) && !isElsewhere) {
      throw invalid(path, `no engine is called that; known: ${known.join(", ")}`);
    }
    const flag = findReservedFlag(engines.find(name)?.kind ?? "", argsIn(path, text));
    if (flag !== null) throw invalid(path, `cannot have ${flag}: the service itself decides this`);
  }
}

function argsIn(path: string, text: string): string[] {
  try {
    return splitArgs(text);
  } catch (error) {
    throw invalid(path, error instanceof Error ? error.message : String(error));
  }
}
