// Installs the pinned agent CLIs into .cache/engines and keeps existing ones. `install.ts claude codex`
// installs these two.
import { buildPinFolder, buildPinProgram, type Pin, PINS } from "./pins.ts";

const all = Deno.args.length === 0 || Deno.args.includes("all");
const wanted = PINS.filter((pin) => all || Deno.args.includes(pin.kind));
for (const pin of wanted) {
  if (await isFile(buildPinProgram(pin))) continue;
  console.error(`installing ${pin.kind} ${pin.version} …`);
  await install(pin);
}

async function install(pin: Pin): Promise<void> {
  const folder = buildPinFolder(pin);
  await Deno.mkdir(folder, { recursive: true });
  const { code } = await new Deno.Command("npm", {
    args: [
      "install",
      `--prefix=${folder}`,
      "--ignore-scripts",
      "--omit=optional",
      "--no-save",
      "--no-audit",
      "--no-fund",
      "--loglevel=error",
      pin.package,
    ],
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).output();
  if (code !== 0 || !await isFile(buildPinProgram(pin))) {
    console.error(
      `Cannot install ${pin.package}: npm ended with ${code} and ${buildPinProgram(pin)} is not there`,
    );
    Deno.exit(1);
  }
}

async function isFile(path: string): Promise<boolean> {
  return await Deno.stat(path).then((info) => info.isFile, () => false);
}
