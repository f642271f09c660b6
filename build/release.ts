// `make release` writes an archive per target, SHA256SUMS and the bill of materials to dist/release.
import { join } from "node:path";
import { type Entry, packTarGz, packZip } from "./archive.ts";
import type { Bundle } from "./bundle.ts";
import { compile, hashFile } from "./compile.ts";
import { buildManPages } from "./man.ts";
import { type Locked, ROOT } from "./lock.ts";
import { buildBom, formatNotices, type Part, readLicence } from "./sbom.ts";
import { readStamp } from "./stamp.ts";
import { findTarget, type Target, TARGETS } from "./target.ts";

const FOLDER = join(ROOT, "dist", "release");
const stamp = await readStamp();
const writtenAt = new Date(stamp.commitTime || 0);

const wanted = Deno.args.length === 0 ? TARGETS : Deno.args.map(findTarget);
await Deno.remove(FOLDER, { recursive: true }).catch(() => {});
await Deno.mkdir(FOLDER, { recursive: true });

let runtime = await readDenoVersion();
const packages = new Map<string, Part>();
const files: string[] = [];
let failed = 0;
for (const target of wanted) {
  try {
    const program = join(FOLDER, target.name, target.program);
    const parts = await listParts(await compile(target, program, stamp), target);
    if (target === findTarget(undefined)) runtime = await readDenoInside(program);
    for (const part of parts) packages.set(`${part.name}@${part.version}`, part);
    files.push(await pack(target, program, parts));
  } catch (error) {
    failed++;
    console.error(error instanceof Error ? error.message : error);
  }
  await Deno.remove(join(FOLDER, target.name), { recursive: true }).catch(() => {});
}
if (files.length > 0) {
  const bill = buildBom([...packages.values()].sort((a, b) => a.name < b.name ? -1 : 1), runtime, stamp);
  files.push(
    await writeReleaseFile(
      `svc-${stamp.version}.cdx.json`,
      new TextEncoder().encode(JSON.stringify(bill, null, 2) + "\n"),
    ),
  );
  files.push(await writeInstaller());
  const sums = await Promise.all(
    files.map(async (file) => `${await hashFile(join(FOLDER, file))}  ${file}\n`),
  );
  await Deno.writeTextFile(join(FOLDER, "SHA256SUMS"), sums.join(""));
}
console.log(
  `${
    files.length === 0 ? "nothing" : [...files, "SHA256SUMS"].join(" ")
  } in dist/release, ${failed} targets failed`,
);
Deno.exit(failed === 0 ? 0 : 1);

async function pack(target: Target, program: string, parts: Part[]): Promise<string> {
  const name = `svc-${stamp.version}-${target.name}`;
  const text = async (file: string) => await Deno.readFile(join(ROOT, file));
  const entries: Entry[] = [
    { name: `${name}/${target.program}`, bytes: await Deno.readFile(program), executable: true },
    { name: `${name}/install.sh`, bytes: await text("install.sh"), executable: true },
    { name: `${name}/LICENSE`, bytes: await text("LICENSE"), executable: false },
    { name: `${name}/README.md`, bytes: await text("README.md"), executable: false },
    { name: `${name}/CHANGELOG.md`, bytes: await text("CHANGELOG.md"), executable: false },
    { name: `${name}/config.yaml.example`, bytes: await text("config.yaml.example"), executable: false },
    {
      name: `${name}/NOTICES.txt`,
      bytes: new TextEncoder().encode(formatNotices(parts, runtime)),
      executable: false,
    },
  ];
  for (const [page, roff] of Object.entries(await buildManPages(stamp))) {
    entries.push({ name: `${name}/man/${page}`, bytes: new TextEncoder().encode(roff), executable: false });
  }
  const bytes = target.archive === "zip" ? packZip(entries, writtenAt) : packTarGz(entries, writtenAt);
  console.log(`${name}.${target.archive}  ${(bytes.length / 1e6).toFixed(1)} MB`);
  return await writeReleaseFile(`${name}.${target.archive}`, bytes);
}

/**
 * Returns the contents with their licences. An addon for another target is not installed here and has the licence of this
 * machine's addon.
 */
async function listParts({ packages: inside }: Bundle, target: Target): Promise<Part[]> {
  const here = findTarget(undefined).addon;
  const licence = (locked: Locked) =>
    readLicence(locked, locked.name === target.addon ? { ...locked, name: here } : locked);
  return await Promise.all(inside.map(async (locked) => ({ ...locked, licence: await licence(locked) })));
}

async function writeReleaseFile(name: string, bytes: Uint8Array): Promise<string> {
  await Deno.writeFile(join(FOLDER, name), bytes);
  return name;
}

/** Writes install.sh with this version and the download address SVC_BASE_URL. */
async function writeInstaller(): Promise<string> {
  const script = (await Deno.readTextFile(join(ROOT, "install.sh")))
    .replace(/^version=.*$/m, `version=\${SVC_VERSION:-${stamp.version}}`)
    .replace(/^base=.*$/m, `base=\${SVC_BASE_URL:-${Deno.env.get("SVC_BASE_URL") ?? ""}}`);
  await Deno.writeTextFile(join(FOLDER, "install.sh"), script, { mode: 0o755 });
  return "install.sh";
}

/** Returns the version of the compiling Deno. The base has the same version unless DENORT_BIN names another. */
async function readDenoVersion(): Promise<string> {
  const deno = Deno.env.get("DENO_FOR_COMPILE") ?? Deno.execPath();
  return await runCommand(deno, "eval", "console.log(Deno.version.deno)");
}

async function readDenoInside(program: string): Promise<string> {
  return JSON.parse(await runCommand(program, "version", "--json")).deno;
}

async function runCommand(command: string, ...args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(command, { args, stderr: "inherit" }).output();
  return new TextDecoder().decode(stdout).trim();
}
