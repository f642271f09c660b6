import { load } from "../base/lazy_import.ts";
import type { ConsoleFiles } from "../http/console.ts";

/** Bundles the console from source. A build replaces this module with finished files (decision 0027). */
export async function openConsole(): Promise<ConsoleFiles> {
  const { bundleConsoleFromSource } = await load<typeof import("../../build/console.ts")>(
    "../../build/console.ts",
    import.meta.url,
  );
  return await bundleConsoleFromSource();
}
