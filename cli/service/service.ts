import { isAbsolute, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readConfigSource, resolveConfigPath } from "../../src/config/file.ts";
import { EXIT, Exit, formatReason, getExitCode, usageError } from "../terminal/exit.ts";
import { BrokenPipe, type Io } from "../terminal/io.ts";
import { formatTopHelp } from "../commands/top_commands.ts";
import { Output } from "../terminal/output.ts";
import { createStyle } from "../terminal/style.ts";
import { exists, type InitSystem } from "./init_system.ts";
import { createLaunchd } from "./launchd.ts";
import { buildLaunchdPlist, buildServicePath, buildSystemdUnit, type ServicePlan } from "./service_unit.ts";
import { createSystemd } from "./systemd.ts";

const OPTIONS = {
  system: { type: "boolean" },
  user: { type: "boolean" },
  config: { type: "string", short: "c" },
  "data-dir": { type: "string" },
  "run-as": { type: "string" },
  "env-file": { type: "string" },
  writable: { type: "string", multiple: true },
  program: { type: "string" },
  name: { type: "string" },
  standby: { type: "boolean" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

type ServiceFlags = ReturnType<typeof parse>["values"];

/** The properties of the machine that a plan depends on. */
export interface Machine {
  os: typeof Deno.build.os;
  uid: number | null;
  /** The path of this executable, or null when run from source. */
  program: string | null;
  initSystem: (os: typeof Deno.build.os, io: Io) => InitSystem;
}

const THIS_MACHINE: Machine = {
  os: Deno.build.os,
  uid: Deno.uid(),
  program: Deno.build.standalone ? Deno.execPath() : null,
  initSystem: (os, io) => os === "darwin" ? createLaunchd(io) : createSystemd(io),
};

/** `svc service`: returns the exit code (contract 6). */
export async function runService(args: string[], io: Io, machine: Machine = THIS_MACHINE): Promise<number> {
  try {
    const { values, positionals: [verb, ...more] } = parse(args);
    if (values.help || verb === "help") {
      io.out(formatTopHelp("service") ?? "");
      return EXIT.done;
    }
    if (verb === undefined) {
      io.err(formatTopHelp("service") ?? "");
      return EXIT.usage;
    }
    if (more.length > 0) {
      throw usageError(`unexpected argument ${JSON.stringify(more[0])}. See \`svc service help\`.`);
    }
    return await run(verb, values, io, machine);
  } catch (error) {
    if (error instanceof BrokenPipe) return EXIT.done;
    io.err(`svc: ${error instanceof Error ? error.message : error}\n`);
    return error instanceof Error && error.name === "ConfigError" ? EXIT.usage : getExitCode(error);
  }
}

function parse(args: string[]) {
  try {
    const parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true, strict: true, tokens: true });
    const named = parsed.tokens.flatMap((token) => token.kind === "option" ? [token.name] : []);
    const twice = named.find((name, at) =>
      name !== "writable" && OPTIONS[name as keyof typeof OPTIONS].type === "string" &&
      named.indexOf(name) < at
    );
    if (twice !== undefined) throw new Error(`--${twice} can be used only once`);
    return parsed;
  } catch (error) {
    throw usageError(
      `${formatReason(error).split(". ")[0]}. See \`svc service help\`.`,
    );
  }
}

async function run(verb: string, given: ServiceFlags, io: Io, machine: Machine): Promise<number> {
  if (!["print", "install", "uninstall", "status"].includes(verb)) {
    throw usageError(
      `unknown command ${JSON.stringify(verb)}. Use print, install, uninstall or status.`,
    );
  }
  if (machine.os === "windows") {
    throw usageError(
      "Cannot run a service on Windows. Run `svc serve` in WSL 2 or in a container. svc ctl works on Windows.",
    );
  }
  const plan = await buildPlan(given, io, machine, {
    withProgram: verb === "print" || verb === "install",
    // Every user may see the status, but not the configuration.
    withData: verb !== "status",
  });
  const unit = machine.os === "darwin" ? buildLaunchdPlist(plan) : buildSystemdUnit(plan);
  if (verb === "print") {
    io.out(unit);
    return EXIT.done;
  }
  if (verb !== "status" && plan.scope === "system" && machine.uid !== 0) {
    throw new Exit(
      EXIT.notAllowed,
      `Cannot ${verb} a system service: it requires root. Use sudo or --user.`,
    );
  }
  const init = machine.initSystem(machine.os, io);
  if (verb === "install") await init.install(plan, unit);
  else if (verb === "uninstall") await init.uninstall(plan);
  else return await printStatus(init, plan, given.json === true, io);
  return EXIT.done;
}

async function printStatus(init: InitSystem, plan: ServicePlan, json: boolean, io: Io): Promise<number> {
  const { installed, running, ...rest } = await init.status(plan);
  const row = { name: plan.name, scope: plan.scope, installed, running, ...rest };
  const format = json ? "json" : io.outIsTerminal ? "table" : "tsv";
  new Output(io, format, await createStyle(io.outIsTerminal, io.env)).object(JSON.stringify(row), row);
  return !installed ? EXIT.notFound : running ? EXIT.done : EXIT.tryAgain;
}

async function buildPlan(
  given: ServiceFlags,
  io: Io,
  machine: Machine,
  { withProgram, withData }: { withProgram: boolean; withData: boolean },
): Promise<ServicePlan> {
  if (given.system && given.user) throw usageError("--system and --user cannot be used together");
  const scope = given.system || (!given.user && machine.uid === 0) ? "system" : "user";
  if (scope === "user" && given["run-as"] !== undefined) throw usageError("--run-as requires --system");
  const name = given.name ?? "svc";
  if (!/^[a-z][a-z0-9-]{0,30}$/.test(name)) {
    throw usageError("--name: use a lower-case letter, then up to 30 lower-case letters, digits and dashes");
  }
  const account = given["run-as"] ?? name;
  if (!/^[a-z_][a-z0-9_-]{0,30}$/i.test(account)) {
    throw usageError(`--run-as: ${JSON.stringify(account)} is not a valid account name`);
  }
  const places = findDirectories(scope, name, machine.os, io);
  const path = (flag: string, value: string) => checkPath(flag, resolve(io.cwd, value));
  const program = given.program === undefined ? machine.program : path("--program", given.program);
  if (program === null && withProgram) {
    throw usageError(
      "--program is required: this svc runs from source. Build an executable with `make build`.",
    );
  }
  const config = given.config === undefined
    ? join(places.config, "config.yaml")
    : path("--config", given.config);
  return {
    name,
    scope,
    program: program ?? "",
    config,
    dataDir: given["data-dir"] === undefined
      ? withData && await readDataDir(config) || places.data
      : path("--data-dir", given["data-dir"]),
    account,
    environmentFile: given["env-file"] === undefined
      ? join(places.config, "environment")
      : path("--env-file", given["env-file"]),
    standby: given.standby === true,
    path: scope === "user"
      ? buildServicePath(io.env.PATH ?? "", machine.os === "darwin" ? "darwin" : "linux")
      : "",
    writable: (given.writable ?? []).map((one) => path("--writable", one)),
  };
}

/** Returns the data directory in a configuration, or null. */
async function readDataDir(config: string): Promise<string | null> {
  if (!await exists(config)) return null;
  const { document, base } = await readConfigSource(config);
  const named = document?.getIn(["data_dir"]);
  return typeof named === "string" ? resolveConfigPath(base, named) : null;
}

function findDirectories(
  scope: "system" | "user",
  name: string,
  os: string,
  io: Io,
): { config: string; data: string } {
  if (scope === "system") {
    return os === "darwin"
      ? { config: `/usr/local/etc/${name}`, data: `/usr/local/var/${name}` }
      : { config: `/etc/${name}`, data: `/var/lib/${name}` };
  }
  const home = io.env.HOME ?? "";
  if (!isAbsolute(home)) {
    throw usageError("HOME is not set. Set it, or use --system.");
  }
  const folder = (variable: string, fallback: string) => {
    const set = io.env[variable] ?? "";
    return join(isAbsolute(set) ? set : join(home, fallback), name);
  };
  return { config: folder("XDG_CONFIG_HOME", ".config"), data: folder("XDG_DATA_HOME", ".local/share") };
}

function checkPath(flag: string, path: string): string {
  // deno-lint-ignore no-control-regex
  if (/[\u0000-\u001f\u007f]/.test(path)) throw usageError(`${flag} must not contain control characters`);
  return path;
}
