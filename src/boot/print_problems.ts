import { keepAddonIn } from "../store/db/addon.ts";
import { inspect } from "../store/db/database.ts";

/**
 * `svc inspect <file> <folder>`: prints what is wrong with a database file that nobody has open, a line each; exit code 1 when there is
 * anything. The service checks each backup with it, in a process of its own (reliability BAK-1). `folder` is where libSQL's addon is kept.
 */
export async function printFaults([path = "", folder = ""]: string[]): Promise<number> {
  if (folder !== "") keepAddonIn(folder);
  const faults = await inspect(path);
  for (const fault of faults) console.log(fault);
  return faults.length === 0 ? 0 : 1;
}
