import { dirname, isAbsolute, resolve } from "node:path";
import type { Document } from "yaml";
import { load } from "../base/lazy_import.ts";

/** The configuration is invalid. Exit code 2. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ConfigError";
  }
}

/** The command line is invalid. Reported like an invalid configuration. */
export class UsageError extends ConfigError {}

export const CONFIG_DEFAULT = "config.yaml";

/** Extracts the value of `-c` or `--config` from a command line. Throws UsageError for an empty value. */
export function extractConfigFlag(words: readonly string[]): { config: string | undefined; rest: string[] } {
  let config: string | undefined;
  const rest: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const [flag, value] = word.split(/=(.*)/s);
    if (flag !== "-c" && flag !== "--config") {
      rest.push(word);
      continue;
    }
    if (config !== undefined) throw new UsageError("--config can be used only once");
    config = value ?? words[++at] ?? "";
    if (config === "") throw new UsageError("--config must not be empty");
  }
  return { config, rest };
}

/** Reads `-c` or `--config` of a command without other arguments. Throws UsageError for any other word. */
export function readConfigFlag(command: string, words: readonly string[]): string | undefined {
  const { config, rest: [unknown] } = extractConfigFlag(words);
  if (unknown === undefined) return config;
  if (command === "serve" && /^--?p(ort)?(=|$)/.test(unknown)) {
    throw new UsageError(
      "serve has no --port: set server.port in config.yaml, or start with SVC_SERVER__PORT=9000 svc serve",
    );
  }
  throw new UsageError(
    `unknown argument ${JSON.stringify(unknown)}. Usage: svc ${command} [-c config.yaml]${
      command === "serve" ? " [--no-console] [--standby]" : ""
    }`,
  );
}

/** The configuration file's path (null without a file), directory and YAML document. */
export interface ConfigSource {
  path: string | null;
  /** Base of relative paths. */
  base: string;
  document: Document.Parsed | null;
  /** Finds line and column (from 1) of an offset. */
  position: (offset: number) => { line: number; column: number };
}

/** Reads the file of `-c`, or `config.yaml` if it exists. Throws ConfigError. */
export async function readConfigSource(flag: string | undefined): Promise<ConfigSource> {
  const path = resolve(flag ?? CONFIG_DEFAULT);
  const none = { path: null, base: Deno.cwd(), document: null, position: () => ({ line: 0, column: 0 }) };
  let text: string;
  try {
    text = Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      if (flag === undefined) return none;
      throw new ConfigError(
        `Cannot read the configuration ${path}: no such file. Omit -c to use the defaults.`,
      );
    }
    const reason = error instanceof Error ? error.message.replace(/ \(os error.*/, "") : String(error);
    throw new ConfigError(`Cannot read the configuration ${path}: ${reason}`);
  }
  // Loads the YAML parser only for an existing file, so that ctl starts faster without one.
  const { parseYaml } = await load<typeof import("./yaml.ts")>("./yaml.ts", import.meta.url);
  try {
    return { path, base: dirname(path), ...parseYaml(text) };
  } catch (error) {
    throw new ConfigError(`${path}:${error instanceof Error ? error.message : error}`);
  }
}

interface EnvironmentOverride {
  name: string;
  path: string[];
  text: string;
}

const SECRET_KEYS = new Set([
  "auth.password_hash",
  "auth.jwt_secret",
  "auth.oidc.client_secret",
  "database.auth_token",
]);
const TOP_LEVEL = new Map([["SVC_DATA_DIR", "data_dir"], ["SVC_FILES_DIR", "files_dir"], [
  "SVC_SHUTDOWN_GRACE",
  "shutdown_grace",
]]);

/** Lists the keys that the environment sets: `SVC_A__B` for `a.b`, `SVC_A__B_FILE` for secrets. Throws ConfigError. */
export function listEnvironmentOverrides(env: Record<string, string>): EnvironmentOverride[] {
  const overrides: EnvironmentOverride[] = [];
  for (const name of Object.keys(env).sort()) {
    const value = env[name] ?? "";
    const top = TOP_LEVEL.get(name);
    if (top !== undefined) overrides.push({ name, path: [top], text: value });
    if (!/^SVC_[A-Z0-9]+(_[A-Z0-9]+)*__[A-Z0-9_]+$/.test(name)) continue;
    const path = parseKeyPath(name);
    const secret = path.join(".").replace(/_file$/, "");
    if (name.endsWith("_FILE") && SECRET_KEYS.has(secret)) {
      overrides.push({ name, path: secret.split("."), text: readSecretFile(name, value) });
    } else overrides.push({ name, path, text: value });
  }
  return overrides;
}

function parseKeyPath(name: string): string[] {
  const parts = name.slice(4).split("__");
  // Names below engines.<name>.env are variables, which keep their case.
  const isVariable = parts[0] === "ENGINES" && parts[2] === "ENV";
  return parts.map((part, index) => isVariable && index === 3 ? part : part.toLowerCase());
}

/** Reads a secret from a file without its last line break. Throws ConfigError with the name of the key or variable. */
export function readSecretFile(name: string, path: string): string {
  try {
    return Deno.readTextFileSync(path).replace(/\r?\n$/, "");
  } catch {
    throw new ConfigError(`${name}: cannot read ${path}. Specify a readable file.`);
  }
}

export function resolveConfigPath(base: string, path: string): string {
  return isAbsolute(path) ? path : resolve(base, path);
}

/** The settings that `ctl` needs to reach its server. */
export interface ClientConfig {
  host: string;
  port: number;
  dataDir: string;
  jwtSecret: string;
  username: string;
}

/** Reads the client's settings from environment, file and defaults without loading the schema. Throws ConfigError. */
export async function readClientConfig(
  flag: string | undefined,
  env: Record<string, string>,
): Promise<ClientConfig> {
  const source = await readConfigSource(flag);
  const overrides = listEnvironmentOverrides(env);
  const get = (...path: string[]): string | undefined => {
    // The file of a secret wins over its value, as on the server.
    const override = overrides.findLast((entry) => entry.path.join(".") === path.join("."));
    if (override !== undefined) return override.text;
    const value = source.document?.getIn(path);
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  };
  const port = Number(get("server", "port") ?? 8080);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new ConfigError(
      `server.port: must be an integer from 0 to 65535. See \`svc ctl config validate\`.`,
    );
  }
  const dataBase = env.SVC_DATA_DIR === undefined ? source.base : Deno.cwd();
  return {
    host: get("server", "host") ?? "127.0.0.1",
    port,
    dataDir: resolveConfigPath(dataBase, get("data_dir") ?? "data"),
    jwtSecret: get("auth", "jwt_secret") ?? "",
    username: get("auth", "username") ?? "admin",
  };
}
