// Reads the state directory of OpenClaw (2026.9): openclaw.json, the workspaces of its agents, and its schedules.
import { isAbsolute, join, relative } from "node:path";
import { usageError } from "../../terminal/exit.ts";
import { addChannel } from "./channels.ts";
import { type CronTable, readCronTable } from "./cron_table.ts";
import {
  asSettings,
  asText,
  asTexts,
  FileFault,
  parseEnvFile,
  parseJson5,
  type Settings,
  type SettingTypes,
  type SourceDir,
} from "./files.ts";
import { JOBS_FILE, readJobsFile } from "./jobs_file.ts";
import { Imported, type ImportedWorker, isSecretName, toText } from "./imported.ts";
import { leaveOutFolders, readMemory } from "./memory_files.ts";
import { convertCron, convertInterval, isTimeZone } from "./schedule_times.ts";
import { resolveValue } from "./values.ts";

const CONFIG = "openclaw.json";
// In the order in which OpenClaw gives them to its agents.
const MEMORY_FILES = ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "MEMORY.md"];
const TYPES: SettingTypes = {
  env: "object",
  agents: "object",
  "agents.defaults": "object",
  "agents.defaults.workspace": "text",
  "agents.entries": "object",
  "agents.list": "list",
  ...buildTypes(["agents.entries.*", "agents.list.*"], {
    name: "text",
    workspace: "text",
    identity: "object",
  }),
  mcp: "object",
  "mcp.servers": "object",
  ...buildTypes(["mcp.servers.*"], { args: "list", env: "object", headers: "object" }),
  channels: "object",
  "channels.*.accounts": "object",
  ...buildTypes(["channels.*", "channels.*.accounts.*"], { allowFrom: "list", dm: "object" }),
  bindings: "list",
  "bindings.*": "object",
};

function buildTypes(places: string[], types: SettingTypes): SettingTypes {
  return Object.fromEntries(places.flatMap((place): [string, SettingTypes[string]][] => [
    [place, "object"],
    ...Object.entries(types).map((
      [name, type],
    ): [string, SettingTypes[string]] => [`${place}.${name}`, type]),
  ]));
}

const DEPTH_MAX = 50;
// Jobs that OpenClaw creates for itself.
const OWN_JOBS = /^(heartbeat|memory-core|skill-collection-review):/;

/** Reads the directory. Throws a usage error for one that is not OpenClaw's. */
export async function readOpenClaw(dir: SourceDir): Promise<Imported> {
  const config = await dir.readSettings(CONFIG, parseJson5, TYPES);
  if (config === null) {
    throw usageError(`Cannot import ${dir.path}: it has no ${CONFIG}. Name the directory ~/.openclaw`);
  }
  const imported = new Imported("openclaw");
  const env = await dir.readSettings(".env", parseEnvFile) ?? {};
  hideSecrets(imported, env, 0);
  hideSecrets(imported, config, 0);
  const resolve = (value: unknown) => resolveValue(value, { ...asSettings(config.env), ...env });
  const workers = await addAgents(imported, dir, config);
  const all = [...workers.values()];
  for (const [name, server] of Object.entries(asSettings(asSettings(config.mcp).servers))) {
    imported.addServer(all, name, asSettings(server), resolve);
  }
  const table = await readTable(imported, dir);
  addJobs(imported, table, workers);
  addChannels(imported, config, { table, workers, resolve });
  leaveOutSettings(imported, config);
  return imported;
}

async function readTable(imported: Imported, dir: SourceDir): Promise<CronTable> {
  const inFile = await readJobsFile(dir, "", parseJson5);
  try {
    const table = await readCronTable(dir);
    // OpenClaw moved the jobs of the file to the database, and a later change is only there.
    if (table.jobs.length === 0) return { ...table, jobs: inFile ?? [] };
    if (inFile !== null) imported.leaveOut(JOBS_FILE, "state/openclaw.sqlite has the current schedules");
    return table;
  } catch (error) {
    if (!(error instanceof FileFault)) throw error;
    imported.leaveOut("state/openclaw.sqlite", `${error.message}, so none of its schedules is imported`);
    return { jobs: inFile ?? [], tooLarge: 0, senders: new Map() };
  }
}

// Texts of an agent may repeat a secret.
function hideSecrets(imported: Imported, settings: Settings, depth: number): void {
  if (depth > DEPTH_MAX) return;
  for (const [name, value] of Object.entries(settings)) {
    if (isSecretName(name)) imported.hide(value);
    for (const one of [value].flat()) hideSecrets(imported, asSettings(one), depth + 1);
  }
}

async function addAgents(
  imported: Imported,
  dir: SourceDir,
  config: Settings,
): Promise<Map<string, ImportedWorker>> {
  const agents = asSettings(config.agents);
  const entries = Object.entries(asSettings(agents.entries)).filter(([id]) => id !== "$include");
  // Earlier versions have a list, and a new directory has only the agent main.
  const listed = Array.isArray(agents.list)
    ? agents.list.map((one): [string, unknown] => [asText(asSettings(one).id), one])
    : [];
  const found = [...entries, ...listed];
  const workers = new Map<string, ImportedWorker>();
  for (const [id, value] of found.length > 0 ? found : [["main", {}] as [string, unknown]]) {
    const agent = asSettings(value);
    const folder = await findWorkspace(imported, dir, { id, agent, config });
    const memory = folder === null ? "" : await readMemory(imported, dir, folder, MEMORY_FILES);
    const name = asText(agent.name) || asText(asSettings(agent.identity).name) || id;
    workers.set(id, imported.addWorker(name, memory));
    const lost = ["model", "heartbeat", "tools", "sandbox", "skills", "subagents"].filter((key) =>
      key in agent
    );
    if (lost.length > 0) {
      imported.leaveOut(`agent ${id}`, `${lost.join(", ")} (worker fields: engine, isolation)`);
    }
    if (folder !== null) await leaveOutFolders(imported, dir, folder);
  }
  return workers;
}

/** Returns the workspace of an agent below the directory, or null. */
async function findWorkspace(
  imported: Imported,
  dir: SourceDir,
  { id, agent, config }: { id: string; agent: Settings; config: Settings },
): Promise<string | null> {
  const defaults = asSettings(asSettings(config.agents).defaults);
  const own = asText(agent.workspace);
  const path = own || asText(defaults.workspace) || "workspace";
  // The directory may have moved since OpenClaw wrote the path.
  const [, moved = ""] = /\/\.openclaw\/(.+)$/.exec(path) ?? [];
  const inside = isAbsolute(path) ? relative(dir.path, path) : path;
  const plainId = id.replace(/[^\w-]/g, "_");
  let isMissing = moved !== "" || !/^\.\.(\/|$)/.test(inside);
  for (const candidate of [inside, moved, `workspace-${plainId}`]) {
    if (candidate === "" || candidate.includes("\0")) continue;
    const found = await dir.findInside(candidate);
    if (found !== null && found !== "") return found;
    // A link to another place.
    if (await dir.has(candidate)) isMissing = false;
  }
  imported.leaveOut(
    `files of agent ${id}`,
    isMissing
      ? `its workspace (${path}) does not exist in the directory`
      : `its workspace (${path}) is not inside the directory. Copy it to ${
        join(dir.path, `workspace-${plainId}`)
      }`,
  );
  return null;
}

function addJobs(
  imported: Imported,
  { jobs, tooLarge }: CronTable,
  workers: ReadonlyMap<string, ImportedWorker>,
): void {
  if (tooLarge > 0) imported.leaveOut("schedules", `${tooLarge} are too large`);
  const [first] = workers.values();
  for (const one of jobs) {
    const job = asSettings(one);
    const name = asText(job.name) || asText(job.id);
    const what = `schedule ${name}`;
    const { kind, expr, tz, everyMs } = asSettings(job.schedule);
    const payload = asSettings(job.payload);
    const instruction = toText(asText(payload.message) || asText(payload.text)).trim();
    const worker = workers.get(asText(job.agentId)) ?? first;
    const cron = kind === "cron"
      ? convertCron(asText(expr))
      : kind === "every"
      ? convertInterval(Number(everyMs))
      : null;
    const zone = asText(tz);
    if (OWN_JOBS.test(asText(job.declarationKey))) imported.leaveOut(what, "it is a job of OpenClaw itself");
    else if (instruction === "" || worker === undefined) {
      imported.leaveOut(what, "it has no text for an agent");
    } else if (kind === "at") imported.leaveOut(what, "it runs once: svc ctl schedule create --at");
    else if (cron === null) imported.leaveOut(what, "its times are no cron expression with five fields");
    else if (zone !== "" && !isTimeZone(zone)) imported.leaveOut(what, "its time zone is unknown");
    else {
      const paused = job.enabled === false ? { paused: true } : {};
      const time_zone = zone === "" ? {} : { time_zone: zone };
      imported.addSchedule({ name, worker: worker.name, cron, ...time_zone, instruction, ...paused });
      const { mode, channel, to } = asSettings(job.delivery);
      if (mode !== undefined && mode !== "none") {
        imported.leaveOut(
          `delivery of ${what}`,
          `${[mode, channel, to].map(asText).join(" ").trim()} (schedule field: deliver_to)`,
        );
      }
    }
  }
}

function addChannels(
  imported: Imported,
  config: Settings,
  { table, workers, resolve }: {
    table: CronTable;
    workers: ReadonlyMap<string, ImportedWorker>;
    resolve: (value: unknown) => string | null;
  },
): void {
  const [first] = workers.values();
  const bindings = Array.isArray(config.bindings) ? config.bindings.map(asSettings) : [];
  for (const [kind, value] of Object.entries(asSettings(config.channels))) {
    if (kind === "defaults") continue;
    const { accounts, ...channel } = asSettings(value);
    // Accounts inherit what they do not set.
    const own = Object.entries(asSettings(accounts)).map(([id, one]) => ({
      name: id === "default" ? kind : `${kind}-${id}`,
      settings: { ...channel, ...asSettings(one) },
    }));
    const all = own.length === 0 ? [{ name: kind, settings: channel }] : own;
    const bound = bindings.find(({ match }) => asSettings(match).channel === kind);
    const worker = workers.get(asText(bound?.agentId)) ?? first;
    for (const { name, settings } of all) {
      const old = asSettings(settings.dm);
      const allow = [
        ...asTexts(settings.allowFrom),
        ...asTexts(old.allowFrom),
        ...table.senders.get(kind) ?? [],
      ];
      addChannel(imported, { name, kind, settings, allow, worker: worker?.name ?? "", resolve });
      const lost = ["groups", "guilds", "channels", "groupAllowFrom", "groupPolicy"].filter((key) =>
        key in settings
      );
      if (lost.length > 0) {
        imported.leaveOut(`channel ${name}`, `${lost.join(", ")} (platform field: groups)`);
      }
    }
  }
}

const KNOWN = ["agents", "mcp", "channels", "bindings", "env", "meta", "wizard"];

function leaveOutSettings(imported: Imported, config: Settings): void {
  const { entries: _entries, list: _list, workspace: _workspace, ...agents } = asSettings(config.agents);
  for (const name of ["agents", "agents.entries", "mcp", "channels"]) {
    const settings = name.split(".").reduce<Settings>((above, key) => asSettings(above[key]), config);
    if ("$include" in settings) {
      imported.leaveOut(`$include of ${name}`, "its file is not read");
    }
  }
  const names = [
    ...Object.keys(config).filter((name) => !KNOWN.includes(name)),
    ...Object.keys(asSettings(agents.defaults)).filter((name) => name !== "workspace").map((name) =>
      `agents.defaults.${name}`
    ),
  ];
  for (const name of names) imported.leaveOut(name, `the setting of ${CONFIG} has no equal`);
}
