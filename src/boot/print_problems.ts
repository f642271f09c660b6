import { setAddonDirectory } from "../store/db/addon.ts";
import { inspect } from "../store/db/database.ts";

/**
 * Runs `svc inspect <file> <folder>`: prints the faults of a closed database file. Returns exit code 1 with faults. The service checks each
 * backup with it in a separate process (reliability BAK-1). `folder` contains libSQL's addon.
 */
export async function printFaults([path = "", folder = ""]: string[]): Promise<number> {
  if (folder !== "") setAddonDirectory(folder);
  const faults = await inspect(path);
  for (const fault of faults) console.log(fault);
  return faults.length === 0 ? 0 : 1;
}
