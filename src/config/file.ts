import { dirname, isAbsolute, resolve } from "node:path";
import type { Document } from "yaml";
import { load } from "../base/lazy_import.ts";

/** The configuration cannot be used. Exit code 2; the message says where and what to do (contract 7). */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ConfigError";
  }
}

/** An invalid command line, reported like an invalid configuration, by the name of the program. */
export class UsageError extends ConfigError {}

/** Path of the configuration file when no flag names one. */
export const CONFIG_DEFAULT = "config.yaml";

/**
 * What `-c` or `--config` names among the words of a command line, and the words without it. Throws UsageError when it
 * names nothing.
 */
export function takeConfig(words: readonly string[]): { config: string | undefined; rest: string[] } {
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

/** What `-c` or `--config` names, for a command that takes nothing else. Throws UsageError for every other word. */
export function onlyConfig(command: string, words: readonly string[]): string | undefined {
  const { config, rest: [unknown] } = takeConfig(words);
  if (unknown === undefined) return config;
  throw new UsageError(
    `unknown argument ${JSON.stringify(unknown)}. Usage: svc ${command} [-c config.yaml]${
      command === "serve" ? " [--no-console] [--standby]" : ""
    }`,
  );
}

/** What was found on disk: the file's path (null: none, which is fine), its directory and its YAML document. */
export interface ConfigSource {
  path: string | null;
  /** Relative paths count from here. */
  base: string;
  document: Document.Parsed | null;
  /** Line and column (from 1) of an offset in the file. */
  position: (offset: number) => { line: number; column: number };
}

/** Reads the file that `-c` names, or `config.yaml`. A named file must exist; the default one need not. Throws ConfigError. */
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
  // Only a file that is there costs the YAML parser: ctl starts faster without one.
  const { parseYaml } = await load<typeof import("./yaml.ts")>("./yaml.ts", import.meta.url);
  try {
    return { path, base: dirname(path), ...parseYaml(text) };
  } catch (error) {
    throw new ConfigError(`${path}:${error instanceof Error ? error.message : error}`);
  }
}

/** One key taken from the environment. */
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

/** The keys that the environment sets: `SVC_A__B` for `a.b`, `SVC_A__B_FILE` for secrets (contract 7). Throws ConfigError. */
export function environmentOverrides(env: Record<string, string>): EnvironmentOverride[] {
  const overrides: EnvironmentOverride[] = [];
  for (const name of Object.keys(env).sort()) {
    const value = env[name] ?? "";
    const top = TOP_LEVEL.get(name);
    if (top !== undefined) overrides.push({ name, path: [top], text: value });
    if (!/^SVC_[A-Z0-9]+(_[A-Z0-9]+)*__[A-Z0-9_]+$/.test(name)) continue;
    const path = keyPath(name);
    const secret = path.join(".").replace(/_file$/, "");
    if (name.endsWith("_FILE") && SECRET_KEYS.has(secret)) {
      overrides.push({ name, path: secret.split("."), text: readSecretFile(name, value) });
    } else overrides.push({ name, path, text: value });
  }
  return overrides;
}

function keyPath(name: string): string[] {
  const parts = name.slice(4).split("__");
  // Below engines.<name>.env stand names of variables, which keep their case.
  const isVariable = parts[0] === "ENGINES" && parts[2] === "ENV";
  return parts.map((part, index) => isVariable && index === 3 ? part : part.toLowerCase());
}

/** The text of a secret's file without its last line break. Throws ConfigError naming the variable. */
export function readSecretFile(name: string, path: string): string {
  try {
    return Deno.readTextFileSync(path).replace(/\r?\n$/, "");
  } catch {
    throw new ConfigError(`${name}: cannot read ${path}. Specify a readable file.`);
  }
}

/** A configured path made absolute from the configuration's directory. */
export function absolutePath(base: string, path: string): string {
  return isAbsolute(path) ? path : resolve(base, path);
}

/** What `ctl` has to know to reach its server. */
export interface ClientConfig {
  host: string;
  port: number;
  dataDir: string;
  jwtSecret: string;
  username: string;
}

/** The keys that `ctl` needs, from environment, file and defaults, without loading the whole schema. Throws ConfigError. */
export async function readClientConfig(
  flag: string | undefined,
  env: Record<string, string>,
): Promise<ClientConfig> {
  const source = await readConfigSource(flag);
  const overrides = environmentOverrides(env);
  const get = (...path: string[]): string | undefined => {
    // Of a secret that is there twice the file counts, as for the server.
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
    dataDir: absolutePath(dataBase, get("data_dir") ?? "data"),
    jwtSecret: get("auth", "jwt_secret") ?? "",
    username: get("auth", "username") ?? "admin",
  };
}
