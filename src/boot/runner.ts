import { parseArgs } from "node:util";
import { join, resolve } from "node:path";
import { isLoopback } from "../base/address.ts";
import { systemClock } from "../base/clock.ts";
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
import { openRunSocket } from "../http/server/run_socket.ts";
import type { BoxMachine } from "../run/box.ts";
import { RunnerLoop } from "../runner/loop.ts";
import { EXIT, getExitCode } from "./exit_code.ts";
import { openDataDirectory } from "./first_start.ts";
import { lockDataDirectory } from "./lock.ts";
import { GatewayKeys } from "../engine/gateway_keys.ts";
import { createCatalog } from "./host_limits.ts";
import { findOwnProgram, installShim } from "./shim.ts";

const STOP_GRACE_MS = 30_000;
// Each box has a separate loopback, so no other program has the port.
const RELAY_PORT = 8080;

const log = createLogger("runner");

interface RunnerOptions {
  url: string;
  token: string;
  tokenFile: string;
  config: RunnerConfig;
  warnings: string[];
}

/** Runs `svc runner`: runs workers of a service on another machine until SIGTERM or SIGINT (contract 18). Returns the exit code. */
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
    return await serveRuns(options, umask);
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return error instanceof RefusedError ? EXIT.refused : getExitCode(error);
  }
}

async function serveRuns(options: RunnerOptions, umask: number): Promise<number> {
  const { url, token, config } = options;
  const hasBox = await canBox(config);
  const hasGit = await findGitVersion() !== null;
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
    const loop = new RunnerLoop({
      link: new ServiceClient({ url, token, clock }),
      ...{ clock, paths, config, umask, hasBox, hasGit },
      boxMachine: buildBoxMachine(options, paths),
      engines,
      leftovers: new OrphanRuns(paths),
      maxRuns: config.max_runs,
      place: await ensurePlaceId(paths.root),
    });
    stopOnSignals(loop);
    try {
      await loop.run();
    } finally {
      await engines.release("");
    }
    return EXIT.done;
  } finally {
    lock.close();
  }
}

/** Returns whether this machine can set up a box. Throws ConfigError when every run needs one and it cannot. */
async function canBox({ isolation }: RunnerConfig): Promise<boolean> {
  const fault = await findBoxFault(isolation);
  if (fault === null) return true;
  if (isolation.default === "box") {
    throw new ConfigError(`isolation.default: this runner cannot set up a box: ${fault}`);
  }
  log.info("This runner gets no workers that need a box: {fault}", { fault });
  return false;
}

function buildBoxMachine({ url, tokenFile, config }: RunnerOptions, paths: DataPaths): BoxMachine {
  return {
    paths,
    configPaths: [...(config.path === null ? [] : [config.path]), tokenFile],
    ownProgram: findOwnProgram(),
    etc: new BoxEtc(paths.etc),
    port: () => RELAY_PORT,
    openSocket: (request) =>
      openRunSocket({
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
      }, request),
  };
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return "";
  }
}

function stopOnSignals(loop: RunnerLoop): void {
  const skipGrace = new AbortController();
  let stopping = false;
  const stop = (signal: Deno.Signal) => {
    if (stopping) return skipGrace.abort();
    stopping = true;
    log.info("{signal}: stopping with {runs} runs in progress", { signal, runs: loop.running });
    void loop.stop(STOP_GRACE_MS, skipGrace.signal);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, () => stop(signal));
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
  const usage = "Usage: svc runner --url https://host --token-file <path> [-c runner.yaml]";
  let values: { url?: string; "token-file"?: string; config?: string };
  try {
    ({ values } = parseArgs({
      args: [...args],
      options: {
        url: { type: "string" },
        "token-file": { type: "string" },
        config: { type: "string", short: "c" },
      },
    }));
  } catch (error) {
    throw new ConfigError(`svc runner: ${error instanceof Error ? error.message : error}. ${usage}`);
  }
  if (values.url === undefined) throw new ConfigError(`svc runner: --url is missing. ${usage}`);
  if (values["token-file"] === undefined) {
    throw new ConfigError(`svc runner: --token-file is missing. ${usage}`);
  }
  const token = readSecretFile("--token-file", values["token-file"]).trim();
  if (token === "") throw new ConfigError("--token-file: the file is empty");
  return {
    url: parseUrl(values.url),
    token,
    tokenFile: resolve(values["token-file"]),
    config: await loadRunnerConfig(values.config),
    warnings: listWarnings(values["token-file"]),
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
