import { resolve } from "node:path";
import { load } from "../../../src/base/lazy_import.ts";
import { CONFIG_DEFAULT } from "../../../src/config/file.ts";
import { usageError } from "../../terminal/exit.ts";
import { type AnyCommand, command } from "../command.ts";

// Imported lazily, so that only these commands load the whole schema (contract 6).
function loadSchema() {
  return load<typeof import("../../../src/config/schema.ts")>(
    "../../../src/config/schema.ts",
    import.meta.url,
  );
}

function loadDisplay() {
  return load<typeof import("../../../src/config/show.ts")>("../../../src/config/show.ts", import.meta.url);
}

export const group: AnyCommand[] = [
  command({
    name: "path",
    about: "Print the path of the configuration file",
    examples: ["config path"],
    async run({ out, configFlag, note }) {
      const path = resolve(configFlag ?? CONFIG_DEFAULT);
      const exists = await Deno.stat(path).then((info) => info.isFile, () => false);
      if (!exists && configFlag !== undefined) {
        throw usageError(`Cannot find the file ${path}. Omit -c to use the defaults.`);
      }
      out.object(JSON.stringify({ path, exists }), { path, exists }, path);
      if (!exists) note("no such file; using the defaults");
    },
  }),
  command({
    name: "show",
    about: "Print every key and its value. Secrets are hidden",
    examples: ["config show", "config show --json | jq .limits"],
    async run({ out, configFlag, io }) {
      const { loadConfig } = await loadSchema();
      const { formatConfig } = await loadDisplay();
      const shown = formatConfig((await loadConfig(configFlag, io.env)).config);
      out.object(JSON.stringify(shown), Object.fromEntries(flatten(shown, "")), "");
    },
  }),
  command({
    name: "validate",
    about: "Check the configuration and report errors by file, line and column",
    examples: ["config validate -c /etc/svc/config.yaml"],
    async run({ out, configFlag, io }) {
      const { loadConfig } = await loadSchema();
      const { path } = await loadConfig(configFlag, io.env);
      const result = { valid: true, path: path ?? "" };
      out.object(JSON.stringify(result), result, path ?? "");
    },
  }),
  command({
    name: "schema",
    about: "Print the JSON Schema of the configuration file, for editors",
    examples: ["config schema > config.schema.json"],
    async run({ out }) {
      const { buildConfigJsonSchema } = await loadDisplay();
      out.line(JSON.stringify(buildConfigJsonSchema(), null, 2));
    },
  }),
];

function flatten(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [[path, value]];
  return Object.entries(value).flatMap(([key, inner]) =>
    flatten(inner, path === "" ? key : `${path}.${key}`)
  );
}
