// Reads the directory of Hermes, the agent of Nous Research, as its documents describe it.
import { join } from "node:path";
import { usageError } from "../../terminal/exit.ts";
import { addChannel } from "./channels.ts";
import {
  asSettings,
  asText,
  parseEnvFile,
  parseStrict,
  parseYamlSettings,
  type Settings,
  type SettingTypes,
  type SourceDir,
} from "./files.ts";
import { readJobsFile } from "./jobs_file.ts";
import { Imported, type ImportedWorker, isSecretName, toText } from "./imported.ts";
import { leaveOutFolders, readMemory } from "./memory_files.ts";
import { convertCron, convertInterval, isTimeZone } from "./schedule_times.ts";
import { resolveValue } from "./values.ts";

const CONFIG = "config.yaml";
const MEMORY_FILES = ["SOUL.md", "memories/USER.md", "memories/MEMORY.md"];
const MINUTE_MS = 60_000;
const CHANNELS = ["telegram", "discord", "slack", "feishu"];

const TYPES: SettingTypes = {
  timezone: "text",
  mcp_servers: "object",
  "mcp_servers.*": "object",
  "mcp_servers.*.args": "list",
  "mcp_servers.*.env": "object",
  "mcp_servers.*.headers": "object",
};

/** Reads the directory, with its profiles. Throws a usage error for one that is not Hermes's. */
export async function readHermes(dir: SourceDir): Promise<Imported> {
  const config = await dir.readSettings(CONFIG, parseYamlSettings, TYPES);
  if (config === null) {
    throw usageError(`Cannot import ${dir.path}: it has no ${CONFIG}. Name the directory ~/.hermes`);
  }
  const imported = new Imported("hermes");
  await addProfile(imported, dir, { folder: "", name: "hermes", config });
  for (const name of await dir.listNames("profiles")) {
    const folder = join("profiles", name);
    const own = await dir.readSettings(join(folder, CONFIG), parseYamlSettings, TYPES);
    if (own !== null) await addProfile(imported, dir, { folder, name, config: own });
  }
  return imported;
}

async function addProfile(
  imported: Imported,
  dir: SourceDir,
  { folder, name, config }: { folder: string; name: string; config: Settings },
): Promise<void> {
  const env = await dir.readSettings(join(folder, ".env"), parseEnvFile) ?? {};
  for (const [key, value] of Object.entries(env)) if (isSecretName(key)) imported.hide(value);
  const worker = imported.addWorker(name, await readMemory(imported, dir, folder, MEMORY_FILES));
  const resolve = (value: unknown) => resolveValue(value, env);
  for (const [server, settings] of Object.entries(asSettings(config.mcp_servers))) {
    imported.addServer([worker], server, asSettings(settings), resolve);
  }
  const jobs = await readJobsFile(dir, folder, parseStrict);
  addJobs(imported, jobs ?? [], worker, asText(config.timezone));
  for (const kind of CHANNELS) addHermesChannel(imported, { kind, folder, name, env, worker });
  await leaveOutFolders(imported, dir, folder);
  for (const key of Object.keys(config).filter((key) => !["mcp_servers", "timezone"].includes(key))) {
    imported.leaveOut(join(folder, key), `the setting of ${CONFIG} has no equal`);
  }
  const used = new RegExp(
    `^(${CHANNELS.join("|")})_(bot_token|app_token|app_id|app_secret|allowed_users)$`,
    "i",
  );
  for (const key of Object.keys(env).filter((key) => !used.test(key) && !imported.isNamed(env[key]))) {
    imported.leaveOut(join(folder, ".env", key), "a variable of a worker: svc ctl worker update --env");
  }
}

function addHermesChannel(
  imported: Imported,
  { kind, folder, name, env, worker }: {
    kind: string;
    folder: string;
    name: string;
    env: Settings;
    worker: ImportedWorker;
  },
): void {
  const read = (key: string) => env[`${kind}_${key}`.toUpperCase()];
  const token = read("bot_token");
  const settings = {
    ...(token === undefined ? {} : kind === "discord" ? { token } : { botToken: token }),
    ...(read("app_token") === undefined ? {} : { appToken: read("app_token") }),
    ...(read("app_id") === undefined ? {} : { appId: read("app_id"), appSecret: read("app_secret") }),
  };
  if (Object.keys(settings).length === 0) return;
  const allow = asText(read("allowed_users")).split(",").map((id) => id.trim());
  addChannel(imported, {
    name: folder === "" ? kind : `${kind}-${name}`,
    kind,
    settings,
    allow: read("allow_all_users") === "true" ? ["*"] : allow,
    worker: worker.name,
    resolve: (value) => asText(value) || null,
  });
}

function addJobs(imported: Imported, jobs: readonly unknown[], worker: ImportedWorker, zone: string): void {
  for (const one of jobs) {
    const job = asSettings(one);
    const name = asText(job.name) || asText(job.id);
    const what = `schedule ${name}`;
    const { kind, expr, minutes } = asSettings(job.schedule);
    const instruction = toText(asText(job.prompt)).trim();
    const cron = kind === "cron"
      ? convertCron(asText(expr))
      : kind === "interval"
      ? convertInterval(Number(minutes) * MINUTE_MS)
      : null;
    if (job.no_agent === true || instruction === "") imported.leaveOut(what, "it has no text for an agent");
    else if (kind === "once") imported.leaveOut(what, "it runs once: svc ctl schedule create --at");
    else if (cron === null) imported.leaveOut(what, "its times are no cron expression with five fields");
    else {
      const time_zone = zone !== "" && isTimeZone(zone) ? { time_zone: zone } : {};
      const paused = job.enabled === false ? { paused: true } : {};
      imported.addSchedule({ name, worker: worker.name, cron, ...time_zone, instruction, ...paused });
      const lost = ["deliver", "skills", "skill", "script", "workdir", "model", "repeat"].filter((key) => {
        const value = job[key];
        return value !== undefined && value !== null && value !== "" && JSON.stringify(value) !== "[]";
      });
      if (lost.length > 0) {
        imported.leaveOut(what, `${lost.join(", ")} (schedule fields: deliver_to, max_runs)`);
      }
    }
  }
}
