import { parseArgs } from "node:util";
import { dirname, join, resolve } from "node:path";
import { isLoopback } from "../base/address.ts";
import { systemClock } from "../base/clock.ts";
import { removeTree } from "../base/files/tree_removal.ts";
import { load } from "../base/lazy_import.ts";
import { isUuid } from "../base/id.ts";
import { buildDataPaths, type DataPaths } from "../base/paths.ts";
import { writeWhole } from "../base/whole_file.ts";
import { configureLog, createLogger } from "../base/log.ts";
import { ConfigError, readSecretFile } from "../config/file.ts";
import { loadRunnerConfig, type RunnerConfig } from "../config/runner.ts";
import { BoxEtc } from "../engine/process/box_etc.ts";
import { endOpenProcesses } from "../engine/left_processes.ts";
import { closeDescriptorsOnExec } from "../engine/process/inherited_descriptors.ts";
import { OrphanRuns } from "../runner/orphan_runs.ts";
import { RefusedError, ServiceClient } from "../runner/service_client.ts";
import { forwardToService } from "../runner/box_link.ts";
import { findBoxFault } from "../engine/process/box_fault.ts";
import { findGitVersion } from "../files/git/git.ts";
import { toProblem } from "../http/problem.ts";
import { checkBoxPath } from "../http/box_paths.ts";
import type { BoxMachine } from "../run/box.ts";
import { ONCE_WAIT_MAX_MS, type OnceResult, RunnerLoop } from "../runner/loop.ts";
import { EXIT, getExitCode } from "./exit_code.ts";
import { lockDataDirectory, openDataDirectory } from "./data_directory.ts";
import { GatewayKeys } from "../engine/gateway_keys.ts";
import { createCatalog } from "./host_limits.ts";
import { findOwnProgram, installShim } from "./shim.ts";

const STOP_GRACE_MS = 30_000;
// The scheduler of a runner of one run kills it soon after SIGTERM.
const STOP_GRACE_ONCE_MS = 0;
// Each box has a separate loopback, so no other program has the port.
const RELAY_PORT = 8080;

const log = createLogger("runner");

interface RunnerOptions {
  url: string;
  token: string;
  tokenFile: string;
  config: RunnerConfig;
  warnings: string[];
  /** Does one run in a new directory, and removes the directory. */
  once: boolean;
}

/**
 * Runs `svc runner`: runs workers of a service on another machine until SIGTERM or SIGINT (contract 18), or with `--once` one run
 * (contract 33). Returns the exit code.
 */
export async function runner(args: readonly string[]): Promise<number> {
  let options: RunnerOptions;
  try {
    options = await parseOptions(args);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    return EXIT.config;
  }
  await configureLog("info", Deno.stderr.isTerminal() ? "pretty" : "json");
  for (const words of options.warnings) log.warning("{words}", { words });
  const umask = Deno.umask(0o077);
  closeDescriptorsOnExec();
  try {
    return options.once ? await serveOnce(options, umask) : await serveRuns(options, umask);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return error instanceof RefusedError ? EXIT.refused : getExitCode(error);
  }
}

async function serveOnce(options: RunnerOptions, umask: number): Promise<number> {
  const { config } = options;
  const parent = config.namesRoot ? await openDataDirectory(config.work_root, "work_root") : undefined;
  const root = await Deno.makeTempDir({
    prefix: "svc-run-",
    ...(parent === undefined ? {} : { dir: parent }),
  });
  try {
    return await serveRuns({ ...options, config: { ...config, work_root: root, max_runs: 1 } }, umask);
  } catch (error) {
    if (!(error instanceof RefusedError) || error.status !== 401) throw error;
    log.warning("Too late: the service no longer accepts the token, so there is no run to do");
    return EXIT.done;
  } finally {
    await removeTree({ root: dirname(root), path: root }).catch((error) => {
      log.error("Cannot remove {root}: {error}", { root, error });
    });
  }
}

async function serveRuns(options: RunnerOptions, umask: number): Promise<number> {
  const { url, token, config, once } = options;
  const git = findGitVersion();
  const boxFault = await checkBox(config);
  const paths = buildDataPaths(await openDataDirectory(config.work_root));
  const lock = await lockDataDirectory(paths.lock, null);
  try {
    const removeOpenRuns = await endOpenProcesses(paths.runs);
    // Not awaited: an agent may have left millions of files.
    void removeOpenRuns();
    await installShim(paths.bin);
    const clock = systemClock;
    const engines = createCatalog(config.engines, {
      ...{ umask, stopGraceMs: config.limits.stop_grace },
      // Gateways are the service's. It does not tell a runner when a worker changes, so no process of a runner waits without a run.
      ...{ gateways: {}, gatewayKeys: new GatewayKeys(), describeTools: null },
    });
    const leftovers = new OrphanRuns(paths);
    const loop = new RunnerLoop({
      link: new ServiceClient({ url, token, clock }),
      ...{ clock, paths, config, umask, boxFault, hasGit: await git !== null },
      boxMachine: await buildBoxMachine(options, paths, boxFault === null),
      engines,
      ...{ leftovers, once },
      maxRuns: config.max_runs,
      place: await ensurePlaceId(paths.root),
    });
    const signals = stopOnSignals(loop, once ? STOP_GRACE_ONCE_MS : STOP_GRACE_MS);
    try {
      await loop.run();
    } finally {
      await engines.release("");
    }
    if (!once) return EXIT.done;
    await leftovers.settle();
    return getOnceExit(loop.onceResult, signals.stopped);
  } finally {
    lock.close();
  }
}

function getOnceExit(result: OnceResult, wasStopped: boolean): number {
  if (result === "reported" || wasStopped && result === "no run") return EXIT.done;
  log.error(
    result === "no run"
      ? "Got no run within {minutes} minutes"
      : "The service did not store the end of the run. It tries the task again",
    { minutes: ONCE_WAIT_MAX_MS / 60_000 },
  );
  return result === "no run" ? EXIT.timedOut : EXIT.unexpected;
}

/** Returns why this machine cannot set up a box, or null. Throws ConfigError when every run needs one and it cannot. */
async function checkBox({ isolation }: RunnerConfig): Promise<string | null> {
  const fault = await findBoxFault(isolation);
  if (fault === null) return null;
  if (isolation.default === "box") {
    throw new ConfigError(`isolation.default: this runner cannot set up a box: ${fault}`);
  }
  log.info("This runner gets no workers that need a box: {fault}", { fault });
  return fault;
}

async function buildBoxMachine(
  { url, tokenFile, config }: RunnerOptions,
  paths: DataPaths,
  hasBox: boolean,
): Promise<BoxMachine> {
  // Loading a server for the requests of boxes takes a tenth of the start.
  const sockets = hasBox
    ? await load<typeof import("../http/server/run_socket.ts")>(
      "../http/server/run_socket.ts",
      import.meta.url,
    )
    : null;
  return {
    paths,
    configPaths: [...(config.path === null ? [] : [config.path]), tokenFile],
    ownProgram: findOwnProgram(),
    etc: new BoxEtc(paths.etc),
    port: () => RELAY_PORT,
    openSocket: (request) => {
      if (sockets === null) throw new Error("this machine cannot set up a box");
      return sockets.openRunSocket({
        async handle(asked) {
          const { pathname } = new URL(asked.url);
          try {
            // The service sees a runner there and not a box, so the runner closes the same paths, however they are written.
            for (const path of [pathname, decodePath(pathname)]) checkBoxPath(path);
            return await forwardToService(url, asked);
          } catch (error) {
            return toProblem(error);
          }
        },
      }, request);
    },
  };
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return "";
  }
}

function stopOnSignals(loop: RunnerLoop, graceMs: number): { stopped: boolean } {
  const skipGrace = new AbortController();
  const state = { stopped: false };
  const stop = (signal: Deno.Signal) => {
    if (state.stopped) return skipGrace.abort();
    state.stopped = true;
    log.info("{signal}: stopping with {runs} runs in progress", { signal, runs: loop.running });
    void loop.stop(graceMs, skipGrace.signal);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, () => stop(signal));
  return state;
}

// The id identifies the directory across restarts.
async function ensurePlaceId(root: string): Promise<string> {
  const path = join(root, "place");
  try {
    const id = (await Deno.readTextFile(path)).trim();
    // A write that was interrupted left an invalid id.
    if (isUuid(id)) return id;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  const place = crypto.randomUUID();
  await writeWhole(path, `${place}\n`);
  return place;
}

async function parseOptions(args: readonly string[]): Promise<RunnerOptions> {
  const usage = "Usage: svc runner --url https://host --token-file <path> [-c runner.yaml] [--once]";
  let values: { url?: string; "token-file"?: string; config?: string; once?: boolean };
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        url: { type: "string" },
        "token-file": { type: "string" },
        config: { type: "string", short: "c" },
        once: { type: "boolean" },
      },
    }));
  } catch (error) {
    throw new ConfigError(`svc runner: ${error instanceof Error ? error.message : error}. ${usage}`);
  }
  const url = values.url ?? Deno.env.get("SVC_RUNNER_URL");
  const tokenFile = values["token-file"] ?? Deno.env.get("SVC_RUNNER_TOKEN_FILE");
  if (url === undefined) throw new ConfigError(`svc runner: --url or SVC_RUNNER_URL is missing. ${usage}`);
  if (tokenFile === undefined) {
    throw new ConfigError(`svc runner: --token-file or SVC_RUNNER_TOKEN_FILE is missing. ${usage}`);
  }
  const token = readSecretFile("--token-file", tokenFile).trim();
  if (token === "") throw new ConfigError("--token-file: the file is empty");
  return {
    url: parseUrl(url),
    token,
    tokenFile: resolve(tokenFile),
    config: await loadRunnerConfig(values.config),
    warnings: listWarnings(tokenFile),
    once: values.once ?? false,
  };
}

function listWarnings(tokenFile: string): string[] {
  const { mode } = Deno.statSync(tokenFile);
  if (mode === null || (mode & 0o077) === 0) return [];
  return [
    `Other users of this machine can read the token. Make the file private with: chmod go= ${tokenFile}`,
  ];
}

// Plain HTTP would expose the token.
function parseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ConfigError(`--url: ${JSON.stringify(text)} must look like https://host`);
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw new ConfigError("--url: must start with https:, because each request carries the token");
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}
