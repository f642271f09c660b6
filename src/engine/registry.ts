import type { AnyAdapter } from "./protocol/adapter.ts";
import { acp } from "./adapters/acp.ts";
import { claude } from "./adapters/claude.ts";
import { codex } from "./adapters/codex.ts";
import { command } from "./adapters/command.ts";
import { copilot } from "./adapters/copilot.ts";
import { echo } from "./adapters/echo.ts";
import { gemini } from "./adapters/gemini.ts";
import { goose } from "./adapters/goose.ts";
import { opencode } from "./adapters/opencode.ts";
import { qwen } from "./adapters/qwen.ts";

/**
 * All kinds of engines. To add one, write its manifest in adapters/ and add it here. Each `ctl config` loads this list, so adapters must
 * not import slow modules.
 */
export const ADAPTERS: readonly AnyAdapter[] = [
  claude,
  codex,
  gemini,
  opencode,
  qwen,
  copilot,
  goose,
  acp,
  command,
  echo,
];

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
  // Engines may accept --outputFormat for --output-format.
  const plain = (text: string) => text.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return plain(arg.split("=")[0] ?? "") === flag;
}
