// `make build` writes the executable for this machine to dist/svc, with its checksum and a list of its contents.
import { join } from "node:path";
import { compile, writeSum } from "./compile.ts";
import { ROOT } from "./lock.ts";
import { writeManPages } from "./man.ts";
import { readStamp } from "./stamp.ts";
import { findTarget } from "./target.ts";

try {
  const target = findTarget(undefined);
  const output = join(ROOT, "dist", target.program);
  const stamp = await readStamp();
  const { files } = await compile(target, output, stamp);
  await writeManPages(stamp);
  await writeSum(output);
  await Deno.writeTextFile(`${output}.files.json`, JSON.stringify(files, null, 2) + "\n");
  const { size } = await Deno.stat(output);
  console.log(
    `dist/${target.program}  ${(size / 1e6).toFixed(1)} MB, ${Object.keys(files).length} files inside`,
  );
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  Deno.exit(1);
}
