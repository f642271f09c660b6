import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { ServiceError } from "../../domain/call/error.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import { type Check, type Doctor, findWorstStatus } from "../../domain/system/system.ts";
import { findFallbackFault, listFallbacks, NO_NEEDS } from "../../engine/fallback.ts";
import { LAUNCHER_ADVICE } from "../../domain/work/block.ts";
import { isLauncherHold } from "../../domain/work/launch.ts";
import { createId } from "../../base/id.ts";
import { getConnectionsMax, readOpenFilesMax } from "../../base/open_files.ts";
import {
  listEngineUses,
  listFailingSchedules,
  listFaults,
  listUnplaced,
  readBacklog,
  readDatabaseFacts,
} from "../../store/events/health.ts";
import { findGitVersion } from "../../files/git/git.ts";
import { findSetting } from "../../store/db/setting.ts";
import { listLauncherRows } from "../../store/workers/launcher.ts";
import { countRepoWorkers, countSkillWorkers, listWorkDirs } from "../../store/workers/worker.ts";
import { checkSecrets } from "../account/secret_check.ts";
import { checkPlatforms } from "../chat/platform.ts";
import { type Answer, answer } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { checkIsolation } from "./isolation_check.ts";

const MB = 1_000_000;
// A check of a larger file would block the service too long. Every backup checks its copy.
const CHECKED_MAX_BYTES = 200 * MB;
const DISK_WARN_BYTES = 1_000 * MB;
const DISK_FAIL_BYTES = 100 * MB;
const WAITING_WARN_MS = 5 * 60_000;
const UNROUTED_WARN_MS = 60_000;
const OVERDUE_FAIL_MS = 60_000;
const BACKUP_WARN_MS = 7 * 24 * 60 * 60_000;

type Finding = Omit<Check, "name">;
type DoctorDeps = Deps<
  | "db"
  | "clock"
  | "paths"
  | "stages"
  | "lifecycle"
  | "limits"
  | "engines"
  | "network"
  | "platforms"
  | "owner"
  | "secrets"
  | "secretReferences"
  | "gateways"
  | "launchers"
  | "isolation"
>;

/** Runs all health checks and says how to fix each fault. Throws `forbidden` for runs. */
export async function examine(deps: DoctorDeps, call: Call): Promise<Answer<Doctor>> {
  if (getBoundSessionKey(call.caller) !== null) {
    throw new ServiceError(
      "forbidden",
      "Cannot examine the service from an agent's run: the report shows details of the machine",
    );
  }
  const checks: Check[] = [];
  for (const [name, check] of Object.entries(CHECKS)) {
    // Runs one check at a time for a low load. If a check throws, its error becomes its finding.
    try {
      checks.push({ name, ...await check(deps, call) });
    } catch (error) {
      checks.push({ name, ...fail(error instanceof Error ? error.message : String(error), SEE_LOG) });
    }
  }
  return answer({ status: findWorstStatus(checks), checks });
}

const CHECKS: Record<string, (deps: DoctorDeps, call: Call) => Finding | Promise<Finding>> = {
  database: checkDatabase,
  disk: checkDisk,
  permissions: checkPermissions,
  stages: checkStages,
  queue: checkQueue,
  schedules: checkSchedules,
  engines: checkEngines,
  fallback: checkFallbacks,
  gateways: checkGateways,
  launchers: checkLaunchers,
  workers: checkWorkers,
  isolation: checkIsolation,
  work_dirs: checkWorkDirs,
  git: checkGit,
  backup: checkBackup,
  network: checkNetwork,
  open_files: checkOpenFiles,
  platforms: checkPlatforms,
  secrets: checkSecrets,
};

function pass(detail: string): Finding {
  return { status: "ok", detail, hint: "" };
}

function warn(detail: string, hint: string): Finding {
  return { status: "warn", detail, hint };
}

function fail(detail: string, hint: string): Finding {
  return { status: "fail", detail, hint };
}

async function checkDatabase({ db, owner }: Deps<"db" | "owner">): Promise<Finding> {
  if (db.remote) {
    if (owner?.fault) return fail(owner.fault, "docs/how-to/run-a-database-server.md");
    const started = performance.now();
    await db.first("select 1 as one");
    const standby = owner?.standbys.map(({ host, pid }) => `${host} (pid ${pid})`).join(", ") || "none";
    return pass(
      `a libSQL server, answers in ${Math.round(performance.now() - started)} ms; standby: ${standby}`,
    );
  }
  const { sqlite, bytes } = await readDatabaseFacts(db);
  const words = `SQLite ${sqlite}, ${(bytes / MB).toFixed(1)} MB`;
  if (bytes > CHECKED_MAX_BYTES) {
    return pass(`${words}; too large to check here. Every backup checks its copy.`);
  }
  const faults = await listFaults(db);
  if (faults.length === 0) return pass(`${words}, sound`);
  return fail(
    `${words}, damaged: ${faults.join("; ")}`,
    "Stop the service and restore a backup: svc restore <file>",
  );
}

async function checkDisk({ paths }: Deps<"paths">): Promise<Finding> {
  const disks: { path: string; free: number }[] = [];
  for (const path of new Set([paths.root, paths.files])) {
    const { bavail, bsize } = await statfs(path);
    const probe = join(path, `.${createId()}.probe`);
    await Deno.writeTextFile(probe, "probe", { mode: 0o600 }).then(() => Deno.remove(probe));
    disks.push({ path, free: bavail * bsize });
  }
  const words = disks.map(({ path, free }) => `${Math.round(free / MB)} MB free in ${path}`).join(", ");
  const free = Math.min(...disks.map((disk) => disk.free));
  const hint = "Free some space, or shorten the retention in the configuration.";
  if (free < DISK_FAIL_BYTES) return fail(words, hint);
  return free < DISK_WARN_BYTES ? warn(words, hint) : pass(words);
}

async function checkPermissions({ paths }: Deps<"paths">): Promise<Finding> {
  if (Deno.build.os === "windows") return pass("not checked on Windows");
  const open: string[] = [];
  for (const path of [paths.root, paths.secretKey, paths.logs, paths.uploads, join(paths.root, "svc.db")]) {
    const mode = (await Deno.stat(path).catch(() => null))?.mode ?? 0;
    if ((mode & 0o077) !== 0) open.push(path);
  }
  if (open.length === 0) return pass(`only the service's user can read ${paths.root}`);
  const words = `other users can read ${open.join(", ")}`;
  const hint = `chmod go= ${open.join(" ")}`;
  // While the root directory is closed, open files in it are only a warning: they become readable if the directory is opened later.
  return open.includes(paths.root) ? fail(words, hint) : warn(words, hint);
}

function checkStages({ stages, lifecycle }: Deps<"stages" | "lifecycle">): Finding {
  const all = stages();
  const stalled = all.filter((stage) => !stage.well).map((stage) => stage.name);
  if (stalled.length > 0) {
    return fail(`stalled for over a minute: ${stalled.join(", ")}`, "Read the log and restart the service.");
  }
  return pass(`${all.map((stage) => stage.name).join(", ")}; the service is ${lifecycle.state}`);
}

async function checkQueue({ db, clock, limits }: Deps<"db" | "clock" | "limits">): Promise<Finding> {
  const now = clock.now();
  const backlog = await readBacklog(db, now);
  const age = (since: number | null) => since === null ? 0 : now - since;
  const blocked = backlog.held === 0 ? "" : ` and ${backlog.held} are blocked (svc ctl queue list)`;
  const words =
    `${backlog.pending} tasks wait for a run${blocked}, ${backlog.unrouted} messages wait for the coordinator, ` +
    `${backlog.undelivered} replies wait for delivery`;
  if (age(backlog.overdueSince) > OVERDUE_FAIL_MS) {
    return fail(
      `${backlog.overdue} tasks are overdue, the first for ${formatMinutes(age(backlog.overdueSince))}`,
      SEE_LOG,
    );
  }
  if (age(backlog.unroutedSince) > UNROUTED_WARN_MS) {
    return warn(
      `${words}. The oldest message has waited for ${formatMinutes(age(backlog.unroutedSince))}`,
      SEE_LOG,
    );
  }
  const unplaced = await listUnplaced(db, UNPLACED_SHOWN_MAX);
  if (unplaced.length > 0) {
    return warn(
      `${words}. Waiting without a runner: ${
        unplaced.map(({ tasks, reason }) => `${tasks} (${reason.slice(0, REASON_SHOWN_CHARACTERS)})`).join(
          "; ",
        )
      }`,
      unplaced.every(({ held }) => isLauncherHold(held)) ? LAUNCHER_ADVICE : NO_RUNNER_HINT,
    );
  }
  if (age(backlog.pendingSince) > WAITING_WARN_MS) {
    return warn(
      `${words}. The oldest task has waited for ${formatMinutes(age(backlog.pendingSince))}`,
      `limits.max_concurrent_runs is ${limits.max_concurrent_runs}, and each work directory takes one run at a time`,
    );
  }
  return pass(words);
}

const UNPLACED_SHOWN_MAX = 5;
const REASON_SHOWN_CHARACTERS = 300;
const NO_RUNNER_HINT = "Start a runner that can take them (svc ctl runner add <name> --labels <labels>), " +
  "or change the worker: svc ctl worker update <name> --runs-on <labels>";

const SEE_LOG = "Read the log of the service.";

function formatMinutes(ms: number): string {
  return ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}

const FAILING_SHOWN_MAX = 5;

// Only this check reports a schedule that fails every night.
async function checkSchedules({ db }: Deps<"db">): Promise<Finding> {
  if (await findSetting(db, "schedules_paused") !== null) {
    return warn("a restore paused all schedules", "Resume them: svc ctl system resume");
  }
  const failing = await listFailingSchedules(db, FAILING_SHOWN_MAX);
  if (failing.length === 0) return pass("no schedule failed in its latest run");
  const words = failing.map(({ id, failures_in_row: count, last_error: error }) =>
    `${id}: ${count === 1 ? "the latest run" : `${count} runs in a row`}, ${error.slice(0, 120)}`
  );
  return warn(
    `failing schedules: ${words.join("; ")}`,
    "Run `svc ctl task get <id>` for details, or end the schedule with `svc ctl task cancel <id>`.",
  );
}

async function checkEngines({ engines }: Deps<"engines">): Promise<Finding> {
  const found = await engines.probe();
  const wanted = [...new Set([engines.defaultName, ...engines.configured])];
  const missing = wanted.filter((name) => found[name]?.usable !== true);
  const path = `the service finds programs in PATH=${Deno.env.get("PATH") ?? ""}`;
  const words = [...missing.map((name) => `${name}: ${found[name]?.detail ?? "not found"}`), path].join("; ");
  const hint =
    "Install the program, or set its path in engines.<name>.command. If your shell finds it, run " +
    "`svc service install` again in that shell.";
  if (missing.includes(engines.defaultName)) return fail(words, hint);
  return missing.length > 0 ? warn(words, hint) : pass(`usable: ${wanted.join(", ")}; ${path}`);
}

// The needs of a worker are checked when its `fallback` is set.
function checkFallbacks({ engines }: Deps<"engines">): Finding {
  const pairs = engines.names.flatMap((name) => {
    const own = engines.find(name);
    return own === null ? [] : listFallbacks(engines, own).map((other) => ({
      words: `${other.name} for ${name}`,
      fault: findFallbackFault(own, other, NO_NEEDS),
    }));
  });
  if (pairs.length === 0) return pass("no engine replaces another");
  const faults = pairs.flatMap(({ fault }) => fault ?? []);
  if (faults.length === 0) return pass(`used when needed: ${pairs.map(({ words }) => words).join(", ")}`);
  return warn(
    `cannot be used: ${faults.join("; ")}`,
    "Change these engines, or remove them from engines.<name>.fallback.",
  );
}

async function checkGateways({ gateways }: Deps<"gateways">): Promise<Finding> {
  if (gateways.names.length === 0) return pass("none in config.yaml");
  const found = await Promise.all(
    gateways.names.map(async (name) => ({ name, problem: await gateways.findProblem(name) })),
  );
  const problems = found.filter(({ problem }) => problem !== null);
  if (problems.length === 0) return pass(`each has its secret: ${gateways.names.join(", ")}`);
  return fail(
    problems.map(({ name, problem }) => `${name}: ${problem}`).join("; "),
    "Runs that use these gateways fail until their secrets are set.",
  );
}

async function checkLaunchers({ db, launchers }: Deps<"db" | "launchers">): Promise<Finding> {
  const names = Object.keys(launchers);
  if (names.length === 0) return pass("none in config.yaml");
  const failing = (await listLauncherRows(db)).filter(({ name, failures }) =>
    names.includes(name) && failures > 0
  );
  if (failing.length === 0) return pass(names.join(", "));
  return warn(
    failing.map(({ name, paused_at, last_error }) =>
      `${name}${paused_at !== null ? " is paused" : ""}: ${last_error}`
    )
      .join("; "),
    failing.some(({ paused_at }) => paused_at !== null)
      ? "Fix the cause, then run for each that is paused: svc ctl launcher resume <name>"
      : "Fix the cause. A launcher that is not paused tries again by itself.",
  );
}

async function checkWorkers({ db, engines }: Deps<"db" | "engines">): Promise<Finding> {
  const unusable: string[] = [];
  for (const { engine, workers, name } of await listEngineUses(db)) {
    const { usable, detail } = await engines.probeOne(engine, () => null);
    const who = workers === 1 ? name : `${name} and ${workers - 1} more`;
    if (!usable) unusable.push(`${engine || engines.defaultName} (${who}): ${detail}`);
  }
  if (unusable.length === 0) return pass("the engines of all workers on this machine are usable");
  return warn(
    `unusable engines: ${unusable.join("; ")}`,
    "Choose another engine: svc ctl worker update <id> --engine",
  );
}

async function checkWorkDirs({ db }: Deps<"db">): Promise<Finding> {
  const dirs = await listWorkDirs(db, "");
  const unusable: string[] = [];
  for (const { id, work_dir: path } of dirs) {
    const usable = await Deno.stat(path).then((info) => info.isDirectory, () => false);
    if (!usable) unusable.push(`${path} (worker ${id})`);
  }
  if (unusable.length === 0) {
    return pass(`${dirs.length} work ${dirs.length === 1 ? "directory" : "directories"}`);
  }
  return warn(
    `not usable: ${unusable.slice(0, 5).join(", ")}`,
    "Create the directory again, or delete the worker.",
  );
}

// Only workers with a repository or with skills need git.
async function checkGit({ db }: Deps<"db">): Promise<Finding> {
  const [version, workers, skilled] = await Promise.all([
    findGitVersion(),
    countRepoWorkers(db),
    countSkillWorkers(db),
  ]);
  const used = `workers with a repository: ${workers}${skilled === 0 ? "" : `, with skills: ${skilled}`}`;
  if (version !== null) return pass(`git ${version}; ${used}`);
  return workers + skilled === 0
    ? pass("git is not installed, and no worker has a repository")
    : fail(`git is not installed; ${used}`, "install git on this machine");
}

async function checkBackup({ db, clock }: Deps<"db" | "clock">): Promise<Finding> {
  if (db.remote) {
    return pass(
      "the database is on a libSQL server, which has its own backup. Logs and uploads are on this machine.",
    );
  }
  const fault = await findSetting(db, "backup_fault") ?? "";
  if (fault !== "") {
    return fail(`the last scheduled backup failed: ${fault}`, "Fix the cause. See backup in config.yaml.");
  }
  const at = Number(await findSetting(db, "last_backup_at") ?? 0);
  const hint = "Set backup.cron and backup.dir in config.yaml, or run `svc ctl system backup <file>`.";
  if (at === 0) return warn("no backup exists", hint);
  const days = Math.floor((clock.now() - at) / 86_400_000);
  const words = `the last backup is ${days} days old`;
  return clock.now() - at > BACKUP_WARN_MS ? warn(words, hint) : pass(words);
}

function checkNetwork({ network }: Deps<"network">): Finding {
  const { host, trusted_proxies } = network;
  const loopback = host === "localhost" || host === "::1" || host.startsWith("127.");
  if (loopback) return pass(`reachable only from this machine (${host})`);
  if (trusted_proxies.length > 0) {
    return pass(`reachable at ${host} through ${trusted_proxies.join(", ")}`);
  }
  return warn(
    `reachable at ${host} without TLS`,
    "Put a proxy with TLS in front of the service and name it in server.trusted_proxies.",
  );
}

// A low limit of open files closes connections before server.max_connections does.
function checkOpenFiles({ network }: Deps<"network">): Finding {
  const files = readOpenFilesMax();
  const wanted = network.max_connections;
  const connections = Math.min(getConnectionsMax(files), wanted);
  if (files === Infinity) {
    return pass(`up to ${wanted} connections; the limit of open files is unknown here`);
  }
  const words = `the limit of ${files} open files allows ${connections} connections`;
  if (connections === wanted) return pass(words);
  return warn(
    `${words} of the ${wanted} of server.max_connections`,
    "Raise the limit for the service: LimitNOFILE= in its unit, or ulimit -n.",
  );
}
