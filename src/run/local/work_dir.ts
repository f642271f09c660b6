import { type DataPaths, resolveLinks, touchesData } from "../../base/paths.ts";

/**
 * Returns why a work directory cannot be used, or null. Called before each run, because the directory may have become a link since the last
 * run (reliability PTH-4). The service creates the directory when it stores the worker. A runner creates it for the first run.
 */
export function findWorkDirProblem(workDir: string, paths: DataPaths, isRunner = false): string | null {
  if (touchesData(resolveLinks(workDir), paths)) return "it leads into the service's own data directory";
  try {
    // A synchronous call takes microseconds. An asynchronous one waits for a turn of the event loop.
    if (isRunner) Deno.mkdirSync(workDir, { recursive: true });
    return Deno.statSync(workDir).isDirectory ? null : "not a directory";
  } catch (error) {
    return formatProblem(error);
  }
}

function formatProblem(error: unknown): string {
  if (error instanceof Deno.errors.PermissionDenied) return "no permission";
  if (error instanceof Deno.errors.NotFound) {
    return "it does not exist. Create the directory again, or create another worker";
  }
  if (error instanceof Deno.errors.AlreadyExists || error instanceof Deno.errors.NotADirectory) {
    return "not a directory";
  }
  return error instanceof Error ? error.message.replace(/ \(os error.*/, "") : String(error);
}
