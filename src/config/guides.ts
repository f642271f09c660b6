import type { SetupGuide } from "../domain/system/settings.ts";
import { ADAPTERS, needsNoConfiguration } from "../engine/kinds.ts";
import { MANIFESTS } from "../platform/registry.ts";

/** Lists a guide for every kind of engine and platform. */
export function listGuides(): SetupGuide[] {
  const engines = ADAPTERS.map((adapter): SetupGuide => {
    const { kind } = adapter;
    const own = needsNoConfiguration(adapter);
    return {
      ...{ group: "engine", kind, title: own ? kind : `${kind}: another program` },
      steps: [
        own
          ? "Install its program on the service's machine. Sign in to it as the user that runs the service."
          : "Install your program on the service's machine, where the user that runs the service can start it.",
      ],
      files: [],
      yaml: formatLines("engines:", [
        ...(own
          ? [`default: ${kind}`, `${kind}:`]
          : ["my_engine:", `  kind: ${kind}`, "  command: /usr/local/bin/my-engine"]),
        `  permissions: edit   # or read, ${
          adapter.driver === "agent" && adapter.asks === true ? "ask, " : ""
        }full`,
        "  timeout: 30m",
      ]),
    };
  });
  const platforms = MANIFESTS.map(({ kind, guide: { title, steps, lines } }): SetupGuide => ({
    ...{ group: "platform", kind, title, steps: [...steps] },
    files: lines.flatMap((line) => {
      const [, secret, path] = /(\w+)_file: (\S+)/.exec(line) ?? [];
      return secret === undefined || path === undefined
        ? []
        : [{ path, content: secret.replaceAll("_", " ") }];
    }).filter(({ path }, at, all) => all.findIndex((one) => one.path === path) === at),
    yaml: formatLines("platforms:", lines),
  }));
  return [...engines, ...platforms].filter(({ kind }) => kind !== "echo");
}

function formatLines(first: string, lines: readonly string[]): string {
  return [first, ...lines.map((line) => `  ${line}`), ""].join("\n");
}
