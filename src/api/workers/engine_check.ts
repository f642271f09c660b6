import { invalid } from "../../domain/call/error.ts";
import type { WorkerUpdate } from "../../domain/workers/worker.ts";
import { findReservedFlag } from "../../engine/registry.ts";
import { splitArgs } from "../../engine/arguments.ts";
import type { Catalog } from "../../engine/catalog.ts";

/**
 * Throws `invalid_request` for an unknown engine, and for arguments that are malformed or reserved for the service.
 * `prefix` precedes the field in the message.
 */
export function checkEngines(
  engines: Catalog,
  input: Pick<WorkerUpdate, "engine" | "engine_args" | "runs_on">,
  prefix = "",
): void {
  const known = engines.names;
  // Runners may have engines that this machine does not have.
  const isElsewhere = (input.runs_on ?? []).length > 0;
  if (input.engine !== undefined && engines.find(input.engine) === null && !isElsewhere) {
    throw invalid(
      `${prefix}engine`,
      `no engine is called ${JSON.stringify(input.engine)}. Known engines: ${known.join(", ")}.`,
    );
  }
  for (const [name, text] of Object.entries(input.engine_args ?? {})) {
    const path = `${prefix}engine_args.${name}`;
    if (!known.includes(name) && !isElsewhere) {
      throw invalid(path, `no engine has this name. Known engines: ${known.join(", ")}.`);
    }
    const flag = findReservedFlag(engines.find(name)?.kind ?? "", parseArgs(path, text));
    if (flag !== null) throw invalid(path, `cannot contain ${flag}: the service sets it`);
  }
}

function parseArgs(path: string, text: string): string[] {
  try {
    return splitArgs(text);
  } catch (error) {
    throw invalid(path, error instanceof Error ? error.message : String(error));
  }
}
