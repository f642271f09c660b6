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
import { checkEngines, enginesSchema } from "./engine.ts";
import { checkGateways, checkPlatformGateway, gatewaysSchema } from "./gateway.ts";
import { checkLaunchers, launchersSchema } from "./launcher.ts";
import { limitsSchema } from "./limits.ts";
import { noticesSchema } from "./notices.ts";
import { platformsSchema, readSecretFiles, webhooksSchema } from "./platform.ts";
import { oidcSchema, publicUrlSchema } from "./sign_in.ts";
import { telemetrySchema } from "./telemetry.ts";
import { buildCountSchema, buildDurationSchema } from "./value.ts";
import { findCronFault } from "../domain/work/cron.ts";
import { isolationConfigSchema } from "../domain/workers/isolation.ts";
import { isTimeZone, nameText } from "../domain/call/field.ts";
import { isScryptHash } from "../domain/account/password.ts";
import { LOG_LEVELS } from "../base/log.ts";

const zone = z.string().refine((name) => name === "" || isTimeZone(name), {
  error: "must be a time zone such as Europe/Berlin or UTC",
});

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
  engines: enginesSchema,
  gateways: gatewaysSchema,
  launchers: launchersSchema,
  isolation: isolationConfigSchema.prefault({}),
  scheduler: z.strictObject({ time_zone: zone.default(""), catch_up_window: buildDurationSchema("1h") })
    .prefault({}),
  limits: limitsSchema.prefault({}),
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

function findInputShape(key: string): Shape | undefined {
  const { shape } = configSchema;
  if (!Object.hasOwn(shape, key)) return undefined;
  return z.toJSONSchema(shape[key as keyof typeof shape], { io: "input" }) as Shape;
}
