import { z } from "zod";
import {
  ConfigError,
  type ConfigSource,
  readConfigSource,
  readSecretFile,
  resolveConfigPath,
} from "./file.ts";
import { applyEnvironment, type Shape } from "./environment.ts";
import { formatPosition, formatProblems } from "./problem.ts";
import {
  ADAPTERS,
  findAdapter,
  findAskFault,
  findReservedFlag,
  needsNoConfiguration,
} from "../engine/kinds.ts";
import type { EngineConfig } from "../engine/config.ts";
import type { AnyAdapter } from "../engine/protocol/adapter.ts";
import { checkEngineGateway, checkGateways, checkPlatformGateway, gatewaysSchema } from "./gateway.ts";
import { checkLaunchers, launchersSchema } from "./launcher.ts";
import { noticesSchema } from "./notices.ts";
import { platformsSchema, readSecretFiles, webhooksSchema } from "./platform.ts";
import { oidcSchema, publicUrlSchema } from "./sign_in.ts";
import { telemetrySchema } from "./telemetry.ts";
import { buildCountSchema, buildDurationSchema, buildShareSchema, priceSchema } from "./value.ts";
import { findCronFault } from "../domain/work/cron.ts";
import { isolationConfigSchema } from "../domain/workers/isolation.ts";
import { APPROVAL_TIMEOUT_MAX_MS } from "../domain/work/approval.ts";
import { isTimeZone, nameText } from "../domain/call/field.ts";
import { isScryptHash } from "../domain/account/password.ts";
import { LOG_LEVELS } from "../base/log.ts";

const zone = z.string().refine((name) => name === "" || isTimeZone(name), {
  error: "must be a time zone such as Europe/Berlin or UTC",
});

const KINDS = ADAPTERS.map(({ kind }) => kind);

/** Engines that exist without configuration, named after their kind. */
export const ENGINES_DEFAULT: readonly string[] = ADAPTERS.filter(needsNoConfiguration).map(({ kind }) =>
  kind
);

export const engineSchema = z.strictObject({
  kind: z.enum(KINDS).optional(),
  command: z.string().default(""),
  args: z.array(z.string()).default([]),
  env: z.record(z.string(), z.string()).default({}),
  pass_env: z.array(z.string()).default([]),
  model: z.string().default(""),
  permissions: z.enum(["read", "edit", "ask", "full"]).default("edit"),
  ask_timeout: buildDurationSchema("15m", 1_000),
  state: z.enum(["per_worker", "shared"]).default("per_worker"),
  gateway: z.string().min(1).optional(),
  reserve: buildShareSchema("0%"),
  prices: z.strictObject({ input: priceSchema, output: priceSchema }).optional(),
  fallback: z.array(z.string()).default([]),
  fallback_after: buildDurationSchema("5m"),
  warm: z.strictObject({
    keep: buildDurationSchema("10m", 1_000),
    max: buildCountSchema(2, 0, 1_000),
    spare: z.int().min(0).max(1).optional(),
    max_turns: buildCountSchema(50, 1, 1_000_000),
    max_age: buildDurationSchema("6h", 1_000),
    max_rss_mb: buildCountSchema(1_024, 1, 1_048_576),
  }).optional(),
  timeout: buildDurationSchema("30m", 1),
  idle_timeout: buildDurationSchema("10m", 1),
  shell: z.array(z.string()).optional(),
}) satisfies z.ZodType<EngineConfig>;

const MIB = 1024 * 1024;

/** All keys of `config.yaml` with defaults (contract 7). */
export const configSchema = z.strictObject({
  server: z.strictObject({
    host: z.string().min(1).default("127.0.0.1"),
    port: buildCountSchema(8080, 0, 65_535),
    allowed_origins: z.array(z.string()).default([]),
    allowed_hosts: z.array(z.string()).default([]),
    trusted_proxies: z.array(z.string()).default([]),
    max_connections: buildCountSchema(1_000, 10, 1_000_000),
    max_connections_per_address: buildCountSchema(256, 1, 1_000_000),
    console: z.boolean().default(true),
    public_url: publicUrlSchema,
  }).prefault({}),
  data_dir: z.string().min(1).default("data"),
  files_dir: z.string().default(""),
  database: z.strictObject({
    url: z.string().regex(/^$|^(file:|libsql:|https?:|wss?:)/, {
      error: "must start with file:, libsql:, http: or https:",
    }).default(""),
    auth_token: z.string().default(""),
  }).prefault({}),
  auth: z.strictObject({
    username: nameText().default("admin"),
    password_hash: z.string().refine((text) => text === "" || isScryptHash(text), {
      error: "must be a scrypt hash in PHC form that takes at most 1 GiB of memory",
    }).default(""),
    jwt_secret: z.string().refine((text) => text === "" || text.length >= 32, {
      error: "must be at least 32 characters. Create one: openssl rand -base64 48",
    }).default(""),
    access_ttl: buildDurationSchema("15m", 1_000),
    refresh_ttl: buildDurationSchema("30d", 1_000),
    login_failures_per_minute: buildCountSchema(10, 1, 10_000),
    oidc: oidcSchema.prefault({}),
  }).prefault({}),
  bee: z.strictObject({
    engine: z.string().min(1).default("rules"),
    persona: z.string().default(""),
    quiet_window: buildDurationSchema("0ms").unwrap().optional(),
    timeout: buildDurationSchema("2m", 1),
    max_attempts: buildCountSchema(3, 1, 100),
  }).prefault({}),
  engines: z.object({ default: z.string().min(1).default("echo") }).catchall(engineSchema).prefault({}),
  gateways: gatewaysSchema,
  launchers: launchersSchema,
  isolation: isolationConfigSchema.prefault({}),
  scheduler: z.strictObject({ time_zone: zone.default(""), catch_up_window: buildDurationSchema("1h") })
    .prefault({}),
  limits: z.strictObject({
    max_concurrent_runs: buildCountSchema(4, 1, 10_000),
    max_attempts: buildCountSchema(3, 1, 100),
    max_waiting_messages: buildCountSchema(1_000, 1, 1_000_000),
    max_upload_bytes: buildCountSchema(50 * MIB, 1, 10_240 * MIB),
    max_prompt_bytes: buildCountSchema(MIB, 300 * 1024, 64 * MIB),
    max_tree_bytes: buildCountSchema(10_240 * MIB, MIB, 10_240 * 1_024 * MIB),
    max_log_bytes: buildCountSchema(16 * MIB, 1_024, 10_240 * MIB),
    max_runs_per_hour: buildCountSchema(1_000, 1, 1_000_000),
    max_chain_depth: buildCountSchema(5, 0, 1_000),
    stop_grace: buildDurationSchema("5s"),
  }).prefault({}),
  backup: z.strictObject({
    cron: z.string().default(""),
    keep: buildCountSchema(14, 1, 10_000),
    dir: z.string().default(""),
  }).prefault({}),
  retention: z.strictObject({
    executions: buildDurationSchema("90d", 1_000),
    messages: buildDurationSchema("365d", 1_000),
    journal: buildDurationSchema("30d", 1_000),
    trees: buildDurationSchema("14d", 1_000),
  }).prefault({}),
  search: z.boolean().default(true),
  platforms: platformsSchema,
  webhooks: webhooksSchema,
  notices: noticesSchema,
  telemetry: telemetrySchema.prefault({}),
  push: z.strictObject({ allow_private: z.boolean().default(false) }).prefault({}),
  log: z.strictObject({
    level: z.enum(LOG_LEVELS).default("info"),
    format: z.enum(["auto", "json", "pretty"]).default("auto"),
  }).prefault({}),
  shutdown_grace: buildDurationSchema("30s"),
});

export type Config = z.output<typeof configSchema>;

/** A checked configuration with absolute paths and the database URL. */
export interface LoadedConfig {
  config: Config;
  path: string | null;
  /** The value of SVC_AUTH_PASSWORD or SVC_AUTH_PASSWORD_FILE, or "" when both are unset. */
  password: string;
  /** The file, and the variable of each key that the environment sets: they say where a value comes from. */
  source: ConfigSource;
  fromEnvironment: ReadonlyMap<string, string>;
}

/** Reads file, environment and defaults. Throws ConfigError with position and remedy. */
export async function loadConfig(
  flag: string | undefined,
  env: Record<string, string>,
): Promise<LoadedConfig> {
  const source = await readConfigSource(flag);
  const input = source.document?.toJS() ?? {};
  if (typeof input !== "object" || Array.isArray(input)) {
    throw new ConfigError(`${source.path}:1:1: must be a map of keys, such as "server:"`);
  }
  const fromEnvironment = applyEnvironment(input, env, findInputShape);
  readSecretFiles(input, source.base);
  const result = configSchema.safeParse(input);
  if (!result.success) {
    throw new ConfigError(
      formatProblems(result.error, source, { schema: configSchema, fromEnvironment }).join("\n"),
    );
  }
  const config = result.data;
  const resolvePath = (key: string, path: string) =>
    resolveConfigPath(fromEnvironment.has(key) ? Deno.cwd() : source.base, path);
  config.data_dir = resolvePath("data_dir", config.data_dir);
  config.database.url = resolveDatabaseUrl(config.database.url, config.data_dir, source.base);
  config.files_dir = config.files_dir === "" ? config.data_dir : resolvePath("files_dir", config.files_dir);
  config.backup.dir = config.backup.dir === ""
    ? `${config.data_dir}/backups`
    : resolvePath("backup.dir", config.backup.dir);
  checkBackup(config, source);
  checkFiles(config, source);
  checkGateways(config.gateways, source);
  checkLaunchers(config.launchers, source);
  for (const [name, platform] of Object.entries(config.platforms)) {
    checkPlatformGateway(name, platform, config.gateways, source);
  }
  checkEngines(config.engines, source, { gateways: config.gateways, beeEngine: config.bee.engine });
  const passwordFile = env.SVC_AUTH_PASSWORD_FILE;
  const password = env.SVC_AUTH_PASSWORD ??
    (passwordFile ? readSecretFile("SVC_AUTH_PASSWORD_FILE", passwordFile) : "");
  return { config, path: source.path, password, source, fromEnvironment };
}

function resolveDatabaseUrl(url: string, dataDir: string, base: string): string {
  if (url === "") return `file:${dataDir}/svc.db`;
  const path = /^file:(?!\/)(.*)$/.exec(url)?.[1];
  return path === undefined ? url : `file:${resolveConfigPath(base, path)}`;
}

export function checkBackup(
  { backup: { cron }, database, scheduler }: Pick<Config, "backup" | "database" | "scheduler">,
  source: ConfigSource,
): void {
  if (cron === "") return;
  const fault = database.url.startsWith("file:")
    ? findCronFault(cron, scheduler.time_zone || "UTC", Date.now())
    : "the database is on a libSQL server, which has its own backup. Remove this key.";
  if (fault !== null) {
    throw new ConfigError(`${formatPosition(source, ["backup", "cron"])}backup.cron: ${fault}`);
  }
}

// Backup and restore of a local database expect files and database in one directory.
function checkFiles({ files_dir, data_dir, database }: Config, source: ConfigSource): void {
  if (files_dir === data_dir || !database.url.startsWith("file:")) return;
  throw new ConfigError(
    `${
      formatPosition(source, ["files_dir"])
    }files_dir: is only for a database on a libSQL server, where several machines share ` +
      "files. Remove it, or set database.url.",
  );
}

/** Checks the engines and fills in kinds and commands. Throws ConfigError. `beeEngine` is the coordinator's engine, if any. */
export function checkEngines(
  given: Config["engines"],
  source: ConfigSource,
  { gateways = {}, beeEngine = "rules" }: { gateways?: Config["gateways"]; beeEngine?: string } = {},
): void {
  const { default: defaultName, ...engines } = given;
  const known = new Set(ENGINES_DEFAULT);
  for (const [name, engine] of Object.entries(engines)) {
    const at = `${formatPosition(source, ["engines", name])}engines.${name}`;
    if (!/^[a-z][a-z0-9_-]{0,63}$/.test(name)) {
      throw new ConfigError(`${at}: an engine's name must be lower-case letters, digits, - and _`);
    }
    const adapter = findAdapter(engine.kind ?? name);
    if (adapter === undefined) {
      throw new ConfigError(`${at}.kind: is required. Use one of ${KINDS.join(", ")}.`);
    }
    const { kind, program } = adapter;
    if (program === "" && engine.command === "") {
      throw new ConfigError(`${at}.command: is required. Name the worker's program.`);
    }
    const flag = findReservedFlag(kind, engine.args);
    if (flag !== null) {
      const position = formatPosition(source, ["engines", name, "args"]);
      throw new ConfigError(`${position}engines.${name}.args: cannot contain ${flag}: the service sets it`);
    }
    const canStay = adapter.driver === "agent" && adapter.open !== undefined;
    if (engine.warm !== undefined && engine.warm.max > 0 && !canStay) {
      throw new ConfigError(
        `${
          formatPosition(source, ["engines", name, "warm"])
        }engines.${name}.warm: ${kind} ends after each turn. Remove this key.`,
      );
    }
    if (engine.fallback.includes(name)) {
      const position = formatPosition(source, ["engines", name, "fallback"]);
      throw new ConfigError(`${position}engines.${name}.fallback: cannot contain ${name} itself`);
    }
    checkAsking({ name, engine, adapter }, source);
    checkEngineGateway({ name, engine, adapter }, gateways, source);
    if (engine.command.includes("/")) engine.command = resolveConfigPath(source.base, engine.command);
    engine.kind = kind;
    known.add(name);
  }
  const references = [
    ["engines.default", defaultName],
    ["bee.engine", beeEngine],
    ...Object.entries(engines).flatMap(([engine, { fallback }]) =>
      fallback.map((name) => [`engines.${engine}.fallback`, name] as const)
    ),
  ] as const;
  for (const [key, name] of references) {
    if (known.has(name) || (key === "bee.engine" && name === "rules")) continue;
    const names = [...known].sort().join(", ");
    throw new ConfigError(
      `${formatPosition(source, key.split("."))}${key}: no engine is called ${
        JSON.stringify(name)
      }. Known engines: ${names}.`,
    );
  }
}

const ASKING_KINDS = ADAPTERS.filter((adapter) => adapter.driver === "agent" && adapter.asks === true).map((
  one,
) => one.kind);

function checkAsking(
  { name, engine, adapter }: { name: string; engine: EngineConfig; adapter: AnyAdapter },
  source: ConfigSource,
): void {
  if (engine.ask_timeout > APPROVAL_TIMEOUT_MAX_MS) {
    throw new ConfigError(
      `${
        formatPosition(source, ["engines", name, "ask_timeout"])
      }engines.${name}.ask_timeout: must be at most 7d`,
    );
  }
  if (engine.permissions !== "ask") return;
  const key = adapter.driver !== "agent" || adapter.asks !== true ? "permissions" : "args";
  const fault = key === "permissions"
    ? `${adapter.kind} cannot ask a person about a tool call. Use read, edit or full, or an engine of kind ${
      ASKING_KINDS.join(", ")
    }.`
    : findAskFault(adapter.kind, engine.args);
  if (fault === null) return;
  const position = formatPosition(source, ["engines", name, key]);
  throw new ConfigError(`${position}engines.${name}.${key}: ${fault}`);
}

function findInputShape(key: string): Shape | undefined {
  const { shape } = configSchema;
  if (!Object.hasOwn(shape, key)) return undefined;
  return z.toJSONSchema(shape[key as keyof typeof shape], { io: "input" }) as Shape;
}
