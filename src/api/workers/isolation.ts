import { invalid } from "../../domain/call/error.ts";
import { findExcess, resolveBox, type WorkerIsolation } from "../../domain/workers/isolation.ts";
import { findBoxFault, findProtectedPaths } from "../../files/box_paths.ts";
import { listForeignWorkDirs } from "../../store/workers/worker.ts";
import type { Deps } from "../call/services.ts";

interface BoxedWorker {
  /** "" for a new worker. */
  id: string;
  isolation: WorkerIsolation | null;
  engine: string;
  /** The absolute work directory, or null for the default one. */
  workDir: string | null;
  runs_on: readonly string[];
}

/**
 * Throws `invalid_request` when the worker is in a box that the service would refuse at each run (contract-3 21). `field` is the path of
 * the worker in the request, with its dot.
 */
export async function checkIsolation(
  { db, paths, engines, isolation: { config, configPath } }: Deps<"db" | "paths" | "engines" | "isolation">,
  { id, isolation, engine: name, workDir, runs_on }: BoxedWorker,
  field = "",
): Promise<void> {
  const box = resolveBox(isolation, config);
  if (box === null) return;
  const excess = findExcess(box, config);
  if (excess !== null) throw invalid(`${field}isolation.box.${excess.option}`, excess.reason);
  // Paths and engines of a runner are its own, so it checks them at each run.
  if (runs_on.length > 0) return;
  const engine = engines.find(name);
  if (engine?.agent && engine.config.state === "shared") {
    throw invalid(
      `${field}isolation`,
      `cannot be a box with engine ${engine.name}, whose engines.${engine.name}.state is shared: a box would hold the login of every ` +
        "worker. Set state: per_worker.",
    );
  }
  const others = await listForeignWorkDirs(db, id, paths.workers);
  const guarded = findProtectedPaths(paths, configPath === null ? [] : [configPath], others, config);
  const fault = findBoxFault(box, workDir, guarded);
  if (fault === null) return;
  const at = fault.option === "work_dir" ? "work_dir" : `isolation.box.${fault.option}`;
  throw invalid(`${field}${at}`, `${fault.reason}, so a box cannot have it. Choose another path.`);
}
