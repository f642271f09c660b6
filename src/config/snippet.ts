import { z } from "zod";
import type { ConfigCheck } from "../domain/system/settings.ts";
import { ConfigError, type ConfigSource } from "./file.ts";
import { locateSecret, PLATFORM_SECRETS } from "./platform.ts";
import { formatProblems } from "./problem.ts";
import { checkEngines } from "./engine.ts";
import { checkBackup, type Config, configSchema, type LoadedConfig } from "./schema.ts";
import { parseYaml } from "./yaml.ts";

type Problem = ConfigCheck["problems"][number];

// The name of the text in problems, whose positions start with it.
const NAME = "snippet";

/**
 * Checks lines that a user wants to add to the configuration. Stores nothing and reads no file, also not those that
 * `<secret>_file` names.
 */
export function checkSnippet(
  text: string,
  { config, source }: Pick<LoadedConfig, "config" | "source">,
): ConfigCheck {
  const problems: Problem[] = [];
  let present: string[] = [];
  try {
    const { document, position } = parseYaml(text);
    const input = document.toJS();
    if (typeof input !== "object" || input === null || Array.isArray(input)) {
      throw new ConfigError(`1:1: must contain keys, such as "engines:"`);
    }
    present = Object.keys(input).filter((key) => source.document?.has(key));
    const snippet: ConfigSource = { path: NAME, base: source.base, document, position };
    problems.push(...checkKeys(input, snippet, config));
  } catch (error) {
    problems.push(parseProblem(`${NAME}:${error instanceof Error ? error.message : error}`));
  }
  return { valid: problems.length === 0, problems, present };
}

function checkKeys(
  input: Record<string, unknown>,
  snippet: ConfigSource,
  config: Config,
): Problem[] {
  const fromFiles = takeSecretFiles(input);
  const result = configSchema.safeParse(input);
  if (!result.success) {
    const issues = result.error.issues.filter(({ path }) => !fromFiles.has(path.join(".")));
    const formatted = formatProblems(new z.ZodError(issues), snippet, { schema: configSchema });
    if (formatted.length > 0) return formatted.map(parseProblem);
  }
  const given = result.data ?? configSchema.parse({ engines: input.engines ?? {} });
  try {
    // The engines of the service stay, so that the lines may name one of them.
    const engines = { ...structuredClone(config.engines), ...given.engines } as Config["engines"];
    if (!Object.hasOwn(input.engines ?? {}, "default")) engines.default = config.engines.default;
    const hasBee = Object.hasOwn(input.bee ?? {}, "engine");
    checkEngines(engines, snippet, {
      gateways: { ...config.gateways, ...given.gateways },
      beeEngine: hasBee ? given.bee.engine : config.bee.engine,
    });
    checkBackup({ ...config, backup: given.backup }, snippet);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [parseProblem(error.message)];
  }
}

/** Removes the keys that name the file of a secret. Returns the paths of these secrets. */
function takeSecretFiles(input: Record<string, unknown>): Set<string> {
  const paths = new Set<string>();
  for (const group of ["platforms", "webhooks"]) {
    const entries = input[group];
    if (typeof entries !== "object" || entries === null) continue;
    for (const [name, entry] of Object.entries(entries)) {
      if (typeof entry !== "object" || entry === null) continue;
      for (const secret of PLATFORM_SECRETS) {
        const found = locateSecret(entry, secret);
        if (typeof found?.holder[`${found.key}_file`] !== "string") continue;
        delete found.holder[`${found.key}_file`];
        paths.add([group, name, secret].join("."));
      }
    }
  }
  return paths;
}

function parseProblem(text: string): Problem {
  const [, line = "1", column = "1", message = text] = /^snippet:(?:(\d+):(\d+):)? ?(.*)$/s.exec(text) ?? [];
  return { line: Number(line), column: Number(column), message };
}
