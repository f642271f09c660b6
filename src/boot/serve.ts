import { versions } from "node:process";
import { loadConfig, type LoadedConfig } from "../config/schema.ts";
import { ConfigError, onlyConfig, UsageError } from "../config/file.ts";
import { findExposure } from "../config/exposure.ts";
import { ServiceError } from "../domain/error.ts";
import type { Catalog } from "../engine/catalog.ts";
import { keepDescriptors } from "../engine/descriptors.ts";
import { load } from "../base/load.ts";
import type { Availability } from "../engine/engine.ts";
import { LockedError } from "./lock.ts";
import { configureLog, logger } from "../base/log.ts";
import { feedWatchdog, tellManager } from "./notify.ts";
import { Server } from "./server.ts";
import { sqliteVersion } from "../store/health.ts";
import { endOnUncaught } from "./uncaught.ts";
import { VERSION } from "../base/version.ts";

const EXIT_DONE = 0;
const EXIT_UNEXPECTED = 1;
const EXIT_CONFIG = 2;
const EXIT_IN_USE = 5;

const NO_CONSOLE = "--no-console";

const log = logger("server");

/** `svc serve`: runs until SIGTERM or SIGINT. Returns the exit code (contract 6). */
export async function serve(args: readonly string[]): Promise<number> {
  if (Deno.build.os === "windows") {
    console.error(
      "Cannot serve on Windows: agents are started, held together and ended by means of Unix; use WSL 2 or a container. " +
        "svc ctl works here",
    );
    return EXIT_CONFIG;
  }
  let loaded: LoadedConfig;
  try {
    const rest = args.filter((word) => word !== NO_CONSOLE);
    loaded = await loadConfig(onlyConfig("serve", rest), Deno.env.toObject());
    if (rest.length < args.length) loaded.config.server.console = false;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error instanceof UsageError ? `svc: ${error.message}` : error.message);
    return EXIT_CONFIG;
  }
  const faults = Deno.env.get("SVC_FAULT");
  if (faults) {
    try {
      (await load<typeof import("./fault_plan.ts")>("./fault_plan.ts", import.meta.url)).armPlan(faults);
    } catch (error) {
      console.error(error instanceof Error ? error.message : String(error));
      return EXIT_CONFIG;
    }
  }
  const { level, format } = loaded.config.log;
  const pretty = format === "pretty" || format === "auto" && Deno.stderr.isTerminal();
  await configureLog(level, pretty ? "pretty" : "json");
  await warnOfExposure(loaded.path);
  // Only this user may read what the service writes (reliability SEC-7); programs that it starts get the original mask.
  const umask = Deno.umask(0o077);
  keepDescriptors();
  let server: Server;
  try {
    server = await Server.open(loaded, { umask });
  } catch (error) {
    return startFault(error);
  }
  if (server.generatedPassword !== null) showPassword(loaded, server.generatedPassword);
  const stopped = onSignals(server);
  endOnUncaught(() => {
    server.hurry();
    return server.stop();
  }, Deno.exit);
  try {
    await server.start();
  } catch (error) {
    await server.stop();
    return startFault(error);
  }
  if (server.parts.lifecycle.state !== "stopping") {
    feedWatchdog();
    void tellManager("READY=1", `STATUS=ready at ${server.url}`);
    void sayStarted(server, loaded, pretty);
  }
  await stopped;
  return EXIT_DONE;
}

function startFault(error: unknown): number {
  const words = error instanceof Error ? error.message : String(error);
  console.error(words);
  if (error instanceof ServiceError && error.extras.cause !== undefined) log.debug("{error}", { error });
  return error instanceof LockedError ? EXIT_IN_USE : EXIT_UNEXPECTED;
}

async function warnOfExposure(path: string | null): Promise<void> {
  const exposure = path === null ? null : await findExposure(path).catch(() => null);
  if (exposure === null) return;
  log.warning("Other users can read {key} in {path}; make the file private with: chmod 600 {path}", {
    ...exposure,
  });
}

// Printed once and stored nowhere: stderr, and not the log, which may be kept (contract 2).
function showPassword(loaded: LoadedConfig, password: string): void {
  const { username } = loaded.config.auth;
  console.error(
    `First start. Log in as ${username} with the password ${password}\n` +
      "It is shown only once; change it with: svc ctl system password",
  );
}

/** Resolves when the server has stopped after a signal. A second signal skips the drain (reliability SHD-3). */
function onSignals(server: Server): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = (signal: Deno.Signal) => {
      if (stopping) return server.hurry();
      stopping = true;
      log.info("{signal}: stopping", { signal });
      const told = tellManager("STOPPING=1", "STATUS=letting runs finish");
      Promise.all([server.stop(), told]).catch((error) => log.error("The stop failed: {error}", { error }))
        .finally(() => resolve());
    };
    for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, () => stop(signal));
  });
}

async function sayStarted(server: Server, loaded: LoadedConfig, pretty: boolean): Promise<void> {
  const { config, path } = loaded;
  const { parts, url } = server;
  const sqlite = await sqliteVersion(parts.db).catch(() => "");
  if (!pretty) {
    log.info("svc {version} is ready at {url}", {
      version: VERSION,
      url,
      data_dir: parts.paths.root,
      sqlite,
      // Its time zones decide when schedules fire (reliability CRN-10).
      zone_data: versions.tz ?? "unknown",
    });
  } else {
    say("ready", `svc ${VERSION} at ${url}`);
    say("config", path ?? "defaults (no config.yaml)");
    say("data", parts.paths.root);
    say("database", `${config.database.url.replace(/\/\/[^@/]*@/, "//")} (SQLite ${sqlite})`);
    say("log in", `as ${config.auth.username}, ${passwordHint(server, loaded)}`);
  }
  const [engines, isolation] = await Promise.all([parts.engines.probe(), server.isolation()]);
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
  sayEngines(parts.engines, engines);
}

// Engines that are neither configured nor installed share one line.
function sayEngines(catalog: Catalog, found: Record<string, Availability>): void {
  const absent: string[] = [];
  for (const [name, { usable, version, detail }] of Object.entries(found)) {
    const standard = name === catalog.defaultName;
    if (version === "" && !usable && !standard && !catalog.configured.includes(name)) absent.push(name);
    else {say(
        usable ? "engine" : "no engine",
        `${name}${standard ? " (default)" : ""}: ${joined(version, detail)}`,
      );}
  }
  if (absent.length > 0) say("not here", `${absent.join(", ")} (docs/engines.md)`);
}

function joined(version: string, detail: string): string {
  return version === "" ? detail : `${version}, ${detail}`;
}

function passwordHint(server: Server, loaded: LoadedConfig): string {
  if (loaded.config.auth.password_hash !== "") return "with the password of auth.password_hash";
  if (loaded.password !== "") return "with the password of SVC_AUTH_PASSWORD";
  return server.generatedPassword === null
    ? "with the password of the first start"
    : "with the password above";
}

function say(word: string, text: string): void {
  console.error(`${word.padStart(10)}  ${text}`);
}
