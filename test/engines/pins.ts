import { join } from "node:path";
import { describe, it } from "vitest";
import { ADAPTERS } from "../../src/engine/kinds.ts";
import { ROOT } from "../harness/house/tree.ts";

export interface Pin {
  kind: string;
  version: string;
  /** The platform's own npm package where it exists: no install script and no Node needed. */
  package: string;
  program: string;
}

const PLATFORM = `${Deno.build.os === "darwin" ? "darwin" : "linux"}-${
  Deno.build.arch === "aarch64" ? "arm64" : "x64"
}`;
const RUST_TARGET = `${Deno.build.arch}-${
  Deno.build.os === "darwin" ? "apple-darwin" : "unknown-linux-musl"
}`;

/** Kinds whose npm package or program differs from the names in their adapters. */
const PACKAGES: Record<string, { package: (version: string) => string; program: string }> = {
  claude: {
    package: (version) => `@anthropic-ai/claude-code-${PLATFORM}@${version}`,
    program: `@anthropic-ai/claude-code-${PLATFORM}/claude`,
  },
  codex: {
    package: (version) => `@openai/codex@${version}-${PLATFORM}`,
    program: `@openai/codex/vendor/${RUST_TARGET}/bin/codex`,
  },
  opencode: {
    package: (version) => `opencode-${PLATFORM}@${version}`,
    program: `opencode-${PLATFORM}/bin/opencode`,
  },
  copilot: {
    package: (version) => `@github/copilot-${PLATFORM}@${version}`,
    program: `@github/copilot-${PLATFORM}/copilot`,
  },
  goose: {
    package: (version) => `@aaif/goose-binary-${PLATFORM}@${version}`,
    program: `@aaif/goose-binary-${PLATFORM}/bin/goose`,
  },
};

export const PINS: Pin[] = ADAPTERS.flatMap((adapter) => {
  if (adapter.driver !== "agent" || adapter.tested === null) return [];
  const { kind, tested: { version, release = version } } = adapter;
  const special = PACKAGES[kind];
  const packageName = special?.package(release) ?? `${adapter.tested.package}@${release}`;
  return [{ kind, version, package: packageName, program: special?.program ?? `.bin/${adapter.program}` }];
});

/** Returns the pins whose kinds the environment variable lists; `all` selects every pin. */
export function selectPins(variable = "SVC_TEST_ENGINES"): Pin[] {
  const kinds = (Deno.env.get(variable) ?? "").split(",");
  return PINS.filter(({ kind }) => kinds[0] === "all" || kinds.includes(kind));
}

/** Defines tests for each pin; without pins a skipped test says how to run them. */
export function describePins<T extends Pin>(
  name: string,
  pins: readonly T[],
  timeout: number,
  define: (pin: T) => void,
): void {
  if (pins.length === 0) it.skip("real CLIs: run make test-engines", () => {});
  else describe.each([...pins])(name, { timeout }, define);
}

const CACHE = join(ROOT, ".cache", "engines");

export function buildPinFolder(pin: Pin): string {
  return join(CACHE, `${pin.kind}-${pin.version}`);
}

export function buildPinProgram(pin: Pin): string {
  return join(buildPinFolder(pin), "node_modules", pin.program);
}
