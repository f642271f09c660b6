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
 * Every kind of engine. To add one, write a file in adapters/ and put its name here. The configuration loads this list
 * for each `ctl config`, so adapters must not import anything that is slow to load.
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

/** The adapter of a kind; undefined where there is none. */
export function adapterOf(kind: string | undefined): AnyAdapter | undefined {
  return ADAPTERS.find((adapter) => adapter.kind === kind);
}

/** Whether engines of this kind need no configuration: one exists by default, with the kind as its name. */
export function needsNoConfiguration({ program }: AnyAdapter): boolean {
  return program !== "";
}

// They only print something and end.
const PRINTING_FLAGS = ["-h", "--help", "-v", "-V", "--version"];

/** The first argument that would break how an engine of this kind is run, or null (contract 3, Worker). */
export function reservedFlag(kind: string, args: readonly string[]): string | null {
  const adapter = adapterOf(kind);
  if (adapter?.driver !== "agent") return null;
  const flags = [...adapter.reservedFlags, ...PRINTING_FLAGS];
  return args.find((arg) => arg === "--" || flags.some((flag) => means(arg, flag))) ?? null;
}

function means(arg: string, flag: string): boolean {
  if (!flag.startsWith("--")) return !arg.startsWith("--") && arg.startsWith(flag);
  // Some engines take --outputFormat for --output-format.
  const plain = (text: string) => text.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  return plain(arg.split("=")[0] ?? "") === flag;
}
