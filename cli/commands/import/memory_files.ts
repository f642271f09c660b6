import { join } from "node:path";
import { FileFault, type SourceDir } from "./files.ts";
import { countBytes } from "../../../src/base/bytes.ts";
import { type Imported, TEXT_MAX_BYTES, toText } from "./imported.ts";

/**
 * Joins persona and memory files of an agent into the memory of a worker, in the order of `names`. What does not fit is
 * left out, file by file.
 */
export async function readMemory(
  imported: Imported,
  dir: SourceDir,
  folder: string,
  names: readonly string[],
): Promise<string> {
  let memory = "";
  for (const name of names) {
    const path = join(folder, name);
    try {
      const text = toText(await dir.readText(path, TEXT_MAX_BYTES) ?? "").trim();
      if (text === "") continue;
      const part = `<!-- ${name} -->\n${text}\n`;
      const next = memory === "" ? part : `${memory}\n${part}`;
      if (countBytes(next) > TEXT_MAX_BYTES) {
        throw new FileFault(`the memory of a worker has at most ${TEXT_MAX_BYTES} bytes`);
      }
      memory = next;
    } catch (error) {
      if (!(error instanceof FileFault)) throw error;
      imported.leaveOut(path, error.message);
    }
  }
  return memory;
}

/** Lists what stays in a folder of an agent: its notes and skills. */
export async function leaveOutFolders(imported: Imported, dir: SourceDir, folder: string): Promise<void> {
  const notes = (await dir.listNames(join(folder, "memory"))).filter((name) => name.endsWith(".md"));
  if (notes.length > 0) {
    imported.leaveOut(join(folder, "memory"), `${notes.length} notes. Copy them to the worker's work_dir`);
  }
  for (const name of await dir.listNames(join(folder, "skills"))) {
    imported.leaveOut(
      join(folder, "skills", name),
      "a skill comes from a git repository: svc ctl skill add",
    );
  }
}
