import { versions } from "node:process";
import { loadConfig, type LoadedConfig } from "../config/schema.ts";
import { ConfigError, readConfigFlag, UsageError } from "../config/file.ts";
import { findExposure } from "../config/exposure.ts";
import { ServiceError } from "../domain/call/error.ts";
import type { Catalog } from "../engine/catalog.ts";
import { detectIsolation } from "../engine/process/isolation.ts";
import { closeDescriptorsOnExec } from "../engine/process/inherited_descriptors.ts";
import { load } from "../base/lazy_import.ts";
import type { Availability } from "../engine/engine.ts";
import { EXIT, getExitCode } from "./exit_code.ts";
import { configureLog, createLogger } from "../base/log.ts";
import { feedWatchdog, tellManager } from "./notify.ts";
import { getFilePath } from "./data_marker.ts";
import { Server, type ServerOptions } from "./server.ts";
import { StandbyEnded } from "./standby.ts";
import { readSqliteVersion } from "../store/events/health.ts";
import { endOnUncaught } from "./uncaught.ts";
import { VERSION } from "../base/version.ts";

const NO_CONSOLE = "--no-console";
const STANDBY = "--standby";
// Shorter than the time until another server may take the database.
const LEAVE_MAX_MS = 7_000;

const log = createLogger("server");

const NO_STANDBY = "--standby requires a shared database. Set database.url to a libSQL server " +
  "(docs/how-to/run-a-standby.md)";

/** Runs `svc serve` until SIGTERM or SIGINT. Tests may replace the lease times. Returns the exit code (contract 6). */
export async function serve(
  args: readonly string[],
  replaced: Pick<ServerOptions, "leaseTimes"> = {},
): Promise<number> {
  if (Deno.build.os === "windows") {
    console.error(
      "Cannot serve on Windows: agents require Unix process groups. Use WSL 2 or a container. " +
        "svc ctl works on Windows.",
    );
    return EXIT.config;
  }
  let loaded: LoadedConfig;
  try {
    const rest = args.filter((word) => word !== NO_CONSOLE && word !== STANDBY);
    loaded = await loadConfig(readConfigFlag("serve", rest), Deno.env.toObject());
    if (args.includes(NO_CONSOLE)) loaded.config.server.console = false;
    if (args.includes(STANDBY) && getFilePath(loaded.config.database.url) !== null) {
      throw new UsageError(NO_STANDBY);
    }
    const faults = Deno.env.get("SVC_FAULT");
    if (faults) {
      (await load<typeof import("./fault_plan.ts")>("./fault_plan.ts", import.meta.url)).armPlan(faults);
    }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error instanceof UsageError ? `svc: ${error.message}` : error.message);
    return EXIT.config;
  }
  const { level, format } = loaded.config.log;
  const pretty = format === "pretty" || format === "auto" && Deno.stderr.isTerminal();
  await configureLog(level, pretty ? "pretty" : "json");
  await warnOfExposure(loaded.path);
  // Files of the service are private (reliability SEC-7). Programs that it starts get the original mask.
  const umask = Deno.umask(0o077);
  closeDescriptorsOnExec();
  const signals = new Signals();
  const standby = args.includes(STANDBY) ? signals.listen() : undefined;
  let server: Server;
  try {
    server = await Server.open(loaded, {
      ...replaced,
      umask,
      ...(standby === undefined ? {} : { standby }),
    });
  } catch (error) {
    return reportStartError(error);
  }
  if (server.generatedPassword !== null) showPassword(loaded, server.generatedPassword);
  signals.listen();
  const stopped = signals.stop(server);
  if (standby?.aborted) return await stopped.then(() => EXIT.done);
  endOnUncaught(() => {
    server.hurry();
    return server.stop();
  }, Deno.exit);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    return reportStartError(error);
  }
  if (server.parts.lifecycle.state !== "stopping") {
    // A standby has started the watchdog already.
    if (standby === undefined) feedWatchdog();
    void tellManager("READY=1", `STATUS=ready at ${server.url}`);
    void reportStarted(server, loaded, pretty);
  }
  const lost = await Promise.race([stopped.then(() => false), server.lost.then(() => true)]);
  return lost ? await stopLost(server) : EXIT.done;
}

// Another server may take over this one's runs, so the process ends even if the stop hangs (decision 0021).
async function stopLost(server: Server): Promise<number> {
  server.hurry();
  const late = new Promise<void>((resolve) => setTimeout(resolve, LEAVE_MAX_MS));
  const stopped = server.stop().catch((error) => log.error("Cannot stop in order: {error}", { error }));
  await Promise.race([stopped, late]);
  return EXIT.unexpected;
}

function reportStartError(error: unknown): number {
  if (error instanceof StandbyEnded) return EXIT.done;
  console.error(error instanceof Error ? error.message : String(error));
  if (error instanceof ServiceError && error.extras.cause !== undefined) log.debug("{error}", { error });
  return getExitCode(error);
}

async function warnOfExposure(path: string | null): Promise<void> {
  const exposure = path === null ? null : await findExposure(path).catch(() => null);
  if (exposure === null) return;
  log.warning("Other users can read {key} in {path}. Make the file private with: chmod 600 {path}", {
    ...exposure,
  });
}

// Printed once to stderr and not to the log, which may be stored (contract 2).
function showPassword(loaded: LoadedConfig, password: string): void {
  const { username } = loaded.config.auth;
  console.error(
    `First start. Log in as ${username} with the password ${password}\n` +
      "The password is shown only once. Change it with `svc ctl system password`.",
  );
}

/** Handles SIGINT and SIGTERM: a standby ends its wait, a server stops. */
class Signals {
  readonly #first = new AbortController();
  #server: Server | null = null;
  #stopped = Promise.withResolvers<void>();

  #listens = false;

  /** Starts to handle signals. The first signal aborts the returned one. */
  listen(): AbortSignal {
    if (!this.#listens) {
      for (const signal of ["SIGINT", "SIGTERM"] as const) {
        Deno.addSignalListener(signal, () => this.#on(signal));
      }
    }
    this.#listens = true;
    return this.#first.signal;
  }

  /** Resolves when the server has stopped after a signal. A second signal skips the drain (reliability SHD-3). */
  stop(server: Server): Promise<void> {
    this.#server = server;
    if (this.#first.signal.aborted) this.#stop(server);
    return this.#stopped.promise;
  }

  #on(signal: Deno.Signal): void {
    const again = this.#first.signal.aborted;
    this.#first.abort();
    if (this.#server === null) return;
    if (again) return this.#server.hurry();
    log.info("{signal}: stopping", { signal });
    this.#stop(this.#server);
  }

  #stop(server: Server): void {
    const notified = tellManager("STOPPING=1", "STATUS=waiting for runs to finish");
    Promise.all([server.stop(), notified]).catch((error) =>
      log.error("Cannot stop in order: {error}", { error })
    )
      .finally(() => this.#stopped.resolve());
  }
}

async function reportStarted(server: Server, loaded: LoadedConfig, pretty: boolean): Promise<void> {
  const { config, path } = loaded;
  const { parts, url } = server;
  const sqlite = await readSqliteVersion(parts.db).catch(() => "");
  if (!pretty) {
    log.info("svc {version} is ready at {url}", {
      version: VERSION,
      url,
      data_dir: parts.paths.root,
      sqlite,
      // The zone data decides when schedules fire (reliability CRN-10).
      zone_data: versions.tz ?? "unknown",
    });
  } else {
    say("ready", `svc ${VERSION} at ${url}`);
    say("config", path ?? "defaults (no config.yaml)");
    say("data", parts.paths.root);
    say("database", `${config.database.url.replace(/\/\/[^@/]*@/, "//")} (SQLite ${sqlite})`);
    say("log in", `as ${config.auth.username}, ${formatPasswordHint(server, loaded)}`);
  }
  const [engines, isolation] = await Promise.all([parts.engines.probe(), detectIsolation()]);
  if (!pretty) {
    log.info("Runs are isolated by {isolation}", { isolation });
    for (const [engine, { usable, version, detail }] of Object.entries(engines)) {
      log.info("Engine {engine} usable: {usable}", { engine, usable, version, detail });
    }
    return;
  }
  say(
    "isolation",
    isolation === "namespace" ? "pid namespace per run, same user" : "process group per run, same user",
  );
  reportEngines(parts.engines, engines);
}

// Engines that are neither configured nor installed share one line.
function reportEngines(catalog: Catalog, found: Record<string, Availability>): void {
  const absent: string[] = [];
  for (const [name, { usable, version, detail }] of Object.entries(found)) {
    const standard = name === catalog.defaultName;
    if (version === "" && !usable && !standard && !catalog.configured.includes(name)) absent.push(name);
    else {say(
        usable ? "engine" : "no engine",
        `${name}${standard ? " (default)" : ""}: ${formatEngine(version, detail)}`,
      );}
  }
  if (absent.length > 0) say("missing", `${absent.join(", ")} (docs/how-to/set-up-engines.md)`);
}

function formatEngine(version: string, detail: string): string {
  return version === "" ? detail : `${version}, ${detail}`;
}

function formatPasswordHint(server: Server, loaded: LoadedConfig): string {
  if (loaded.config.auth.password_hash !== "") return "with the password of auth.password_hash";
  if (loaded.password !== "") return "with the password of SVC_AUTH_PASSWORD";
  return server.generatedPassword === null
    ? "with the password of the first start"
    : "with the password above";
}

function say(word: string, text: string): void {
  console.error(`${word.padStart(10)}  ${text}`);
}
