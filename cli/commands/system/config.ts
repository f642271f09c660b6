import { resolve } from "node:path";
import { CONFIG_DEFAULT } from "../../../src/config/file.ts";
import { type AnyCommand, command } from "../command.ts";
import { usageError } from "../../terminal/exit.ts";
import { load } from "../../../src/base/load.ts";

// The whole schema is loaded by these commands only (contract 6).
function loadSchema() {
  return load<typeof import("../../../src/config/schema.ts")>(
    "../../../src/config/schema.ts",
    import.meta.url,
  );
}

function loadDisplay() {
  return load<typeof import("../../../src/config/show.ts")>("../../../src/config/show.ts", import.meta.url);
}

export const configCommands: AnyCommand[] = [
  command({
    name: "path",
    about: "Print which configuration file counts",
    options: {},
    examples: ["config path"],
    async run({ out, configFlag, note }) {
      const path = resolve(configFlag ?? CONFIG_DEFAULT);
      const there = await Deno.stat(path).then((info) => info.isFile, () => false);
      if (!there && configFlag !== undefined) {
        throw usageError(`there is no file ${path}; leave out -c to use the defaults`);
      }
      out.object(JSON.stringify({ path, exists: there }), { path, exists: there }, path);
      if (!there) note("there is no such file, so the defaults hold");
    },
  }),
  command({
    name: "show",
    about:
      "Print every key with the value that holds, from environment, file and defaults; secrets are hidden",
    options: {},
    examples: ["config show", "config show --json | jq .limits"],
    async run({ out, configFlag, io }) {
      const { loadConfig } = await loadSchema();
      const { shownConfig } = await loadDisplay();
      const shown = shownConfig((await loadConfig(configFlag, io.env)).config);
      out.object(JSON.stringify(shown), Object.fromEntries(flatten(shown, "")), "");
    },
  }),
  command({
    name: "validate",
    about: "Check the configuration; faults are named with file, line and column, exit code 2",
    options: {},
    examples: ["config validate -c /etc/svc/config.yaml"],
    async run({ out, configFlag, io }) {
      const { loadConfig } = await loadSchema();
      const { path } = await loadConfig(configFlag, io.env);
      const answer = { valid: true, path: path ?? "" };
      out.object(JSON.stringify(answer), answer, path ?? "");
    },
  }),
  command({
    name: "schema",
    about: "Print the JSON Schema of the configuration file, for editors",
    options: {},
    examples: ["config schema > config.schema.json"],
    async run({ out }) {
      const { configJsonSchema } = await loadDisplay();
      out.line(JSON.stringify(configJsonSchema(), null, 2));
    },
  }),
];

function flatten(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [[path, value]];
  return Object.entries(value).flatMap(([key, inner]) =>
    flatten(inner, path === "" ? key : `${path}.${key}`)
  );
}
