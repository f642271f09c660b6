import { join } from "node:path";

/** Returns every file below a directory that contains the text. */
export async function findText(dir: string, text: string): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory, isFile } of Deno.readDir(dir)) {
    const path = join(dir, name);
    if (isDirectory) found.push(...await findText(path, text));
    else if (isFile && new TextDecoder("latin1").decode(await Deno.readFile(path)).includes(text)) {
      found.push(path);
    }
  }
  return found;
}
