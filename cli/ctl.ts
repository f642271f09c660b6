import { Command, CommanderError } from "commander";
import { versionText } from "../src/base/version.ts";
import { ServiceError } from "../src/domain/error.ts";
import { Client } from "./client.ts";
import { isLost } from "./connection.ts";
import { Problem } from "./transport.ts";
import {
  type AnyCommand,
  checkedValues,
  type Context,
  flagOf,
  longFlag,
  type OptionSpec,
  SHARED_OPTIONS,
} from "./command.ts";
import { durationOf } from "./duration.ts";
import { EXIT, Exit, exitCodeOf, usage } from "./exit.ts";
import { GROUPS, loadGroup } from "./groups.ts";
import { BrokenPipe, type Io } from "./io.ts";
import { Output } from "./output.ts";
import { type RefKind, resolveRef } from "./ref.ts";
import { problemJson } from "./problem_json.ts";
import { styleFor } from "./style.ts";
import { visible } from "./visible.ts";

const VERSION_FLAGS = ["--version", "-V", "-v"];

/** `svc ctl`: runs one command and answers its exit code (contract 6). Loads only the group that is asked for. */
export async function run(args: string[], io: Io): Promise<number> {
  const json = args.includes("--json");
  if (VERSION_FLAGS.includes(args[0] ?? "")) {
    io.out(`${versionText(json)}\n`);
    return EXIT.done;
  }
  try {
    const words = await helpAsFlag(args);
    const root = await program(words, io, json);
    await root.parseAsync(words, { from: "user" });
    return EXIT.done;
  } catch (error) {
    return fail(error, io, json);
  }
}

function fail(error: unknown, io: Io, json: boolean): number {
  if (error instanceof BrokenPipe) return EXIT.done;
  if (io.signal.aborted) return EXIT.interrupted;
  if (error instanceof CommanderError) {
    // Help that was asked for is an answer; everything else is a usage error, and commander has said what.
    if (error.exitCode === 0) return EXIT.done;
    if (json) {
      io.err(problemJson(usage(""), inOurWords(error.message).replace(/\n+/g, " ")) + "\n");
    }
    return EXIT.usage;
  }
  if (!(error instanceof ServiceError) && isLost(error)) {
    return fail(
      new ServiceError("unavailable", "The connection to the service was lost; try again"),
      io,
      json,
    );
  }
  const words = error instanceof Error ? error.message : String(error);
  const known = error instanceof Exit || error instanceof ServiceError || isConfigError(error);
  if (words !== "") {
    if (json) io.err(problemJson(error, words) + "\n");
    else io.err(`svc: ${visible(words)}${adviceFor(error, io)}\n`);
  }
  if (!known && error instanceof Error && io.env.SVC_DEBUG) io.err(`${error.stack}\n`);
  return isConfigError(error) ? EXIT.usage : exitCodeOf(error);
}

function isConfigError(error: unknown): boolean {
  return error instanceof Error && error.name === "ConfigError";
}

// An agent cannot log in as another user: it should continue, and report it.
function adviceFor(error: unknown, io: Io): string {
  if (!io.env.SVC_RUN_ID || !(error instanceof Problem) || !error.json.includes('"required_scope"')) {
    return "";
  }
  return "; this worker was not given it: do without, or say so in your answer";
}

async function program(args: string[], io: Io, json: boolean): Promise<Command> {
  const root = new Command("svc ctl");
  // Before any subcommand is added, or those would still end the process (facts, Deno 10).
  root.exitOverride().configureOutput({
    writeOut: (text) => io.out(text),
    writeErr: (text) => io.err(text),
    outputError: (text, write) => json ? undefined : write(`svc: ${inOurWords(text)}`),
    getOutHelpWidth: () => io.width || 100,
    getErrHelpWidth: () => io.width || 100,
  });
  root.configureHelp({
    styleTitle: (title) => TITLES[title] ?? title,
    subcommandTerm: (one) =>
      [
        one.name(),
        ...one.registeredArguments.map((arg) => arg.required ? `<${arg.name()}>` : `[${arg.name()}]`),
      ]
        .join(" "),
  });
  root.description("Control a running service.").usage("<group> <command> [arguments] [flags]");
  root.helpOption("-h, --help", "print this help").addHelpText("after", AFTER_HELP);
  root.helpCommand("help [group] [command]", "Print the help of a command");
  root.showSuggestionAfterError(true).enablePositionalOptions();
  declare(root, SHARED_OPTIONS);
  const wanted = args.find((arg, index) =>
    Object.hasOwn(GROUPS, arg) && !/^(-c|--config|--ca|--reconnect)$/.test(args[index - 1] ?? "")
  );
  for (const [name, { about }] of Object.entries(GROUPS)) {
    if (name === wanted) await addGroup(root, name, io);
    else root.command(name).description(about).allowUnknownOption().allowExcessArguments();
  }
  return root;
}

const RECONNECT_MS = 60_000;
const TITLES: Record<string, string> = { "Options:": "Flags:" };
const AFTER_HELP = `
The help of one command:  svc ctl help worker create
Exit codes: 0 done, 1 unexpected, 2 wrong usage, 3 not found, 4 not allowed, 5 conflict, 6 unreachable or try again,
7 declined, 8 what was waited for failed, 124 waited too long, 130 interrupted`;

// The parser speaks of options, we speak of flags, everywhere.
function inOurWords(text: string): string {
  return text.replace(/^error: /, "").replace(/^unknown option /, "unknown flag ")
    .replace(/^option '(?:-\w, )?(--[a-z-]+).*' argument missing/, "$1 needs a value");
}

/** `help <group> <command>` as `<group> <command> --help`; what does not exist is left to be refused by its name. */
async function helpAsFlag(args: string[]): Promise<string[]> {
  const [help, group, name] = args.filter((arg) => arg !== "--json");
  if (help !== "help" || group === undefined || group.startsWith("-")) return args;
  if (!Object.hasOwn(GROUPS, group)) return [group];
  const specs = await loadGroup(group);
  if (!Array.isArray(specs) || name === undefined) return [group, "--help"];
  return specs.some((spec) => spec.name === name) ? [group, name, "--help"] : [group, name];
}

async function addGroup(root: Command, name: string, io: Io): Promise<void> {
  const group = await loadGroup(name);
  if (!Array.isArray(group)) return addCommand(root, group, io);
  const parent = root.command(name).description(`${GROUPS[name]?.about ?? ""}.`);
  parent.usage("<command> [arguments] [flags]").helpCommand("help [command]", "Print the help of a command");
  declare(parent, SHARED_OPTIONS);
  for (const spec of group) addCommand(parent, spec, io);
}

function addCommand(parent: Command, spec: AnyCommand, io: Io): void {
  const leaf = parent.command(spec.name).summary(spec.about).description(`${spec.about}.`);
  const args = (spec.args ?? []).map((arg) => arg.startsWith("[") ? arg : `<${arg}>`);
  for (const arg of args) leaf.argument(arg);
  leaf.usage([...args, "[flags]"].join(" "));
  declare(leaf, { ...spec.options, ...SHARED_OPTIONS });
  const examples = spec.examples.map((example) => `  $ svc ctl ${example}`).join("\n");
  leaf.addHelpText("after", `\nExamples:\n${examples}`);
  leaf.action(async (...parts: unknown[]) => {
    const given = sharedFlags(leaf);
    const positional = parts.slice(0, args.length).filter((part) => part !== undefined).map(String);
    try {
      await spec.run(await contextOf(spec, positional, given, io));
    } catch (error) {
      throw error instanceof Problem ? error.named((field) => flagOf(field, spec)) : error;
    }
  });
}

function declare(target: Command, options: Record<string, OptionSpec>): void {
  for (const [, option] of Object.entries(options)) {
    const choices = option.choices === undefined ? "" : ` (${option.choices.join(", ")})`;
    const fallback = option.default === undefined ? "" : ` (default ${option.default})`;
    const needed = option.required ? " (needed)" : "";
    const about = option.about + choices + fallback + needed;
    if (option.type === "list") {
      target.option(option.flags, about, (value: string, all: string[] = []) => [...all, value]);
    } else if (option.several || option.type === "words") {
      target.option(
        option.flags,
        about,
        (value, all?: string) => all === undefined ? value : `${all},${value}`,
      );
    } else if (option.type === "flag") target.option(option.flags, about);
    else target.option(option.flags, about, once(longFlag(option)));
  }
}

// It is unknown which of two values is meant (contract 8.7).
function once(flag: string): (value: string, before: string | undefined) => string {
  return (value, before) => {
    if (before !== undefined) throw usage(`${flag} is given twice`);
    return value;
  };
}

/** The flags of every command, which may stand behind `ctl`, behind the group or behind the command: in one place only. */
function sharedFlags(leaf: Command): Record<string, unknown> {
  const levels = [leaf.parent?.parent, leaf.parent, leaf].map((level) => level?.opts() ?? {});
  for (const flag of ["config", "ca", "reconnect"]) {
    if (levels.filter((given) => given[flag] !== undefined).length > 1) {
      throw usage(`--${flag} is given twice`);
    }
  }
  return Object.assign({}, ...levels);
}

async function contextOf(
  spec: AnyCommand,
  args: string[],
  given: Record<string, unknown>,
  io: Io,
): Promise<Context> {
  const configFlag = typeof given.config === "string" ? given.config : undefined;
  const ca = typeof given.ca === "string" ? given.ca : undefined;
  if (configFlag === "") throw usage("--config must not be empty");
  if (ca === "") throw usage("--ca must not be empty");
  const format = given.json ? "json" : given.quiet ? "ids" : io.outIsTerminal ? "table" : "tsv";
  const reconnectMs = durationOf(given.reconnect, "--reconnect", RECONNECT_MS);
  const client = new Client(io, { config: configFlag, ca, reconnectMs });
  const options = checkedValues(spec, given);
  return {
    io,
    client,
    out: new Output(io, format, await styleFor(io.outIsTerminal, io.env)),
    args: await resolvedArgs(spec, args, client),
    options: await resolvedOptions(spec, options, client),
    configFlag,
    note: (text) => io.err(text + "\n"),
    tell: (what, id, more = "") =>
      io.err(format === "json" ? `${JSON.stringify({ [what]: id })}\n` : `${what} ${id}${more}\n`),
  };
}

async function resolvedArgs(spec: AnyCommand, args: string[], client: Client): Promise<string[]> {
  const names = (spec.args ?? []).map((arg) => arg.replace(/[[\]]/g, ""));
  return await Promise.all(args.map((arg, at) => {
    const kind = spec.refs?.[names[at] ?? ""];
    return kind === undefined ? arg : resolveRef(client, kind, arg);
  }));
}

// What does not exist is left to the server: a filter then finds nothing, and everything else is refused.
async function resolvedFlag(client: Client, kind: RefKind, ref: string): Promise<string> {
  return await resolveRef(client, kind, ref).catch((error) => {
    if (error instanceof ServiceError && error.code === "not_found") return ref;
    throw error;
  });
}

// Of a filter with several values each one may be named.
async function resolvedOptions(
  spec: AnyCommand,
  options: Context["options"],
  client: Client,
): Promise<Context["options"]> {
  const resolved = await Promise.all(
    Object.entries(options).map(async ([name, value]) => {
      const kind = spec.options[name]?.ref;
      if (kind === undefined || typeof value !== "string") return [name, value];
      return [
        name,
        (await Promise.all(value.split(",").map((one) => resolvedFlag(client, kind, one)))).join(","),
      ];
    }),
  );
  return Object.fromEntries(resolved);
}
