import { resolve } from "node:path";
import { usageError } from "./exit.ts";
import type { Io } from "./io.ts";
import { readText } from "./prompt.ts";

/** What a flag names a file for, and how large it may be. */
interface Input {
  /** `--file`. */
  flag: string;
  maxBytes: number;
}

/** The text of a file, or of stdin for `-`. Throws a usage error for what cannot be read or is too large (contract 8.7). */
export async function readInputFile(io: Io, file: string, { flag, maxBytes }: Input): Promise<string> {
  if (file === "-") return await readText(io, maxBytes, flag);
  const path = resolve(io.cwd, file);
  try {
    const { size } = await Deno.stat(path);
    if (size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`);
    return await Deno.readTextFile(path);
  } catch (error) {
    throw usageError(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
