import { type DataPaths, resolveLinks, touchesData } from "../../base/paths.ts";

/**
 * Creates a missing work directory. Returns why it cannot be used, or null. Checked before each run, because a link may have been created
 * since (reliability PTH-4).
 */
export function findWorkDirProblem(workDir: string, paths: DataPaths): string | null {
  if (touchesData(resolveLinks(workDir), paths)) return "it leads into the service's own data directory";
  try {
    // A synchronous call takes microseconds. An asynchronous one waits for a turn of the event loop.
    Deno.mkdirSync(workDir, { recursive: true });
    return null;
  } catch (error) {
    return formatProblem(error);
  }
}

function formatProblem(error: unknown): string {
  if (error instanceof Deno.errors.PermissionDenied) return "no permission";
  if (error instanceof Deno.errors.AlreadyExists || error instanceof Deno.errors.NotADirectory) {
    return "not a directory";
  }
  return error instanceof Error ? error.message.replace(/ \(os error.*/, "") : String(error);
}
