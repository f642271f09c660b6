import { join } from "node:path";
import { ROOT } from "../harness/tree.ts";

/** One agent CLI at the version that its adapter was measured with. */
export interface Pin {
  kind: string;
  version: string;
  /** What npm installs; the platform's own package where there is one: that needs no install script and no Node. */
  package: string;
  /** The program in it. */
  program: string;
}

const PLATFORM = `${Deno.build.os === "darwin" ? "darwin" : "linux"}-${
  Deno.build.arch === "aarch64" ? "arm64" : "x64"
}`;
const RUST_TARGET = `${Deno.build.arch}-${
  Deno.build.os === "darwin" ? "apple-darwin" : "unknown-linux-musl"
}`;

export const PINS: Pin[] = [
  {
    kind: "claude",
    version: "2.1.329",
    package: `@anthropic-ai/claude-code-${PLATFORM}@2.1.329`,
    program: `@anthropic-ai/claude-code-${PLATFORM}/claude`,
  },
  {
    kind: "codex",
    version: "0.169.0",
    package: `@openai/codex@0.169.0-${PLATFORM}`,
    program: `@openai/codex/vendor/${RUST_TARGET}/bin/codex`,
  },
  {
    kind: "gemini",
    version: "0.61.0",
    package: "@google/gemini-cli@0.61.0",
    program: ".bin/gemini",
  },
  {
    kind: "opencode",
    version: "1.18.33",
    package: `opencode-${PLATFORM}@1.18.33`,
    program: `opencode-${PLATFORM}/bin/opencode`,
  },
  {
    kind: "qwen",
    version: "0.24.4",
    package: "@qwen-code/qwen-code@0.24.4",
    program: ".bin/qwen",
  },
  {
    kind: "copilot",
    version: "1.0.102",
    package: `@github/copilot-${PLATFORM}@1.0.102`,
    program: `@github/copilot-${PLATFORM}/copilot`,
  },
  {
    kind: "goose",
    version: "1.34.0",
    package: `@aaif/goose-binary-${PLATFORM}@0.20.1`,
    program: `@aaif/goose-binary-${PLATFORM}/bin/goose`,
  },
];

const CACHE = join(ROOT, ".cache", "engines");

/** Where npm puts a pinned CLI. */
export function folderOf(pin: Pin): string {
  return join(CACHE, `${pin.kind}-${pin.version}`);
}

/** The path of its program. */
export function programOf(pin: Pin): string {
  return join(folderOf(pin), "node_modules", pin.program);
}
