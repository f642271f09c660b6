import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { readAddon } from "./addon.ts";
import { type Bundle, bundle, ENTRY } from "./bundle.ts";
import { ROOT } from "./lock.ts";
import type { Stamp } from "./stamp.ts";
import { findTarget, type Target } from "./target.ts";
import { V8_FLAGS } from "./v8_flags.ts";

/** Builds the executable `output` for a target and returns its contents. Throws Error with one line. */
export async function compile(target: Target, output: string, stamp: Stamp): Promise<Bundle> {
  const base = findBase(target);
  const folder = join(ROOT, ".cache", "build", target.name);
  const made = await bundle(folder, await readAddon(target), stamp);
  await Deno.mkdir(dirname(output), { recursive: true });
  const deno = Deno.env.get("DENO_FOR_COMPILE") ?? Deno.execPath();
  const { success, stderr } = await new Deno.Command(deno, {
    // No code cache: Deno stores it in the shared temporary directory under a name that any user can create, and for a bundle
    // it saves nothing (decision 0005).
    args: [
      ...["compile", "-A", "--quiet", "--no-check", "--no-config", "--no-lock", "--no-code-cache", V8_FLAGS],
      // Datagrams over Unix sockets, for messages to systemd (`src/boot/notify.ts`).
      "--unstable-net",
      // Returns the machine's time zone 20 ms sooner than Intl does (`src/config/time_zone.ts`).
      "--unstable-temporal",
      ...Object.keys(made.files).filter((name) => !name.endsWith(".js")).flatMap((
        name,
      ) => ["--include", name]),
      ...["--target", target.triple, "--output", output, ENTRY],
    ],
    cwd: folder,
    env: { ...base, NO_COLOR: "1" },
  }).output();
  if (!success) throw new Error(formatFault(target, new TextDecoder().decode(stderr)));
  return made;
}

function formatFault(target: Target, said: string): string {
  const lines =
    said.split("Stack backtrace")[0]?.split("\n").map((line) => line.trim()).filter((line) => line !== "") ??
      [];
  if (!said.includes("base binary")) return `Cannot build for ${target.name}: ${lines.join(" ")}`;
  return `Cannot build for ${target.name}: Deno's base for it cannot be downloaded here (${
    lines.at(-1)?.replace(/^\d+: /, "")
  }); ` +
    `name one in ${getBaseVariable(target)}`;
}

function getBaseVariable(target: Target): string {
  return `DENORT_BIN_${target.name.toUpperCase().replace("-", "_")}`;
}

/**
 * Returns the environment variable that names Deno's runtime base: DENORT_BIN for this machine's target, DENORT_BIN_<TARGET> (such as
 * DENORT_BIN_LINUX_ARM64) for another target. Returns none when neither is set; Deno then downloads the base.
 */
function findBase(target: Target): Record<string, string> {
  const variable = getBaseVariable(target);
  const own = Deno.env.get(variable);
  if (own !== undefined) return { DENORT_BIN: own };
  const foreign = target.triple !== findTarget(undefined).triple;
  if (foreign && Deno.env.get("DENORT_BIN") !== undefined) {
    throw new Error(
      `Cannot build for ${target.name}: DENORT_BIN is a base for this machine's kind; name one for that target in ${variable}`,
    );
  }
  return {};
}

/** Returns the SHA-256 of a file in hexadecimal. */
export async function hashFile(file: string): Promise<string> {
  return createHash("sha256").update(await Deno.readFile(file)).digest("hex");
}

/** Writes `<file>.sha256` in the format of `sha256sum --check`. */
export async function writeSum(file: string): Promise<void> {
  await Deno.writeTextFile(`${file}.sha256`, `${await hashFile(file)}  ${basename(file)}\n`);
}
