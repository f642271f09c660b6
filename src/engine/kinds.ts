import type { AnyAdapter } from "./protocol/adapter.ts";
import * as registry from "./registry.ts";

export const ADAPTERS: readonly AnyAdapter[] = Object.values(registry);

export function findAdapter(kind: string | undefined): AnyAdapter | undefined {
  return ADAPTERS.find((adapter) => adapter.kind === kind);
}

/** Whether an engine of this kind exists by default, named after its kind. */
export function needsNoConfiguration({ program }: AnyAdapter): boolean {
  return program !== "";
}

// Engines with one of these flags print a text and exit.
const PRINTING_FLAGS = ["-h", "--help", "-v", "-V", "--version"];

/** Returns the first argument that an engine of this kind must not get, or null (contract 3, Worker). */
export function findReservedFlag(kind: string, args: readonly string[]): string | null {
  const adapter = findAdapter(kind);
  if (adapter?.driver !== "agent") return null;
  const flags = [...adapter.reservedFlags, ...PRINTING_FLAGS];
  return args.find((arg) => arg === "--" || flags.some((flag) => matchesFlag(arg, flag))) ?? null;
}

function matchesFlag(arg: string, flag: string): boolean {
  if (!flag.startsWith("--")) return !arg.startsWith("--") && arg.startsWith(flag);
  // An engine may accept --outputFormat instead of --output-format.
  const plain = (text: string) => text.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return plain(arg.split("=")[0] ?? "") === flag;
}

/** Returns why an engine with `permissions: ask` cannot have these arguments, or null. */
export function findAskFault(kind: string, args: readonly string[]): string | null {
  const adapter = findAdapter(kind);
  if (adapter?.driver !== "agent" || adapter.open?.acceptsArgs?.(args) !== false) return null;
  return "with permissions: ask it accepts only settings (-c, --enable, --disable)";
}
