import { load } from "../base/lazy_import.ts";
import type { ConsoleFiles } from "../http/console.ts";

/** The files of the console, bundled from source when they are asked for; the build puts finished ones in this place (decision 0027). */
export async function openConsole(): Promise<ConsoleFiles> {
  const { sourceConsole } = await load<typeof import("../../build/console.ts")>(
    "../../build/console.ts",
    import.meta.url,
  );
  return await sourceConsole();
}
