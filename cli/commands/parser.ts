import { Command, CommanderError } from "commander";
import { type AnyCommand, longFlag, type OptionSpec, SHARED_OPTIONS } from "./command.ts";
import { EXIT, Exit, usageError } from "../terminal/exit.ts";
import { GROUPS, loadGroup } from "./groups.ts";
import type { Io } from "../terminal/io.ts";
import type { ParsedLine } from "./plain_line.ts";

/**
 * Reads a command line, prints the help that it asks for, and says what is wrong with it. Returns null after help. Throws a
 * usage error. Whatever parsePlainLine() reads it reads alike.
 */
export async function parseLine(args: string[], io: Io, json: boolean): Promise<ParsedLine | null> {
  const words = await rewriteHelp(args);
  const found: { line: ParsedLine | null } = { line: null };
  const root = await buildProgram(words, io, { json, found: (line) => found.line = line });
  try {
    await root.parseAsync(words, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Help that was asked for is an answer; everything else is a usage error, and without --json commander has said what.
    if (error.exitCode === 0) return null;
    throw new Exit(EXIT.usage, json ? rewriteParserMessage(error.message).replace(/\n+/g, " ") : "");
  }
  return found.line;
}

interface ParseOptions {
  json: boolean;
  found: (line: ParsedLine) => void;
}

async function buildProgram(args: string[], io: Io, { json, found }: ParseOptions): Promise<Command> {
  const root = new Command("svc ctl");
  // Before any subcommand is added, or those would still end the process (facts, Deno 10).
  root.exitOverride().configureOutput({
    writeOut: (text) => io.out(text),
    writeErr: (text) => io.err(text),
    outputError: (text, write) => json ? undefined : write(`svc: ${rewriteParserMessage(text)}`),
    getOutHelpWidth: () => io.width || 100,
    getErrHelpWidth: () => io.width || 100,
  });
  root.configureHelp({
    styleTitle: (title) => TITLE_TEXTS[title] ?? title,
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
  addOptions(root, SHARED_OPTIONS);
  const wanted = args.find((arg, index) =>
    Object.hasOwn(GROUPS, arg) && !/^(-c|--config|--ca|--reconnect)$/.test(args[index - 1] ?? "")
  );
  for (const [name, { about }] of Object.entries(GROUPS)) {
    if (name === wanted) await addGroup(root, name, found);
    else root.command(name).description(about).allowUnknownOption().allowExcessArguments();
  }
  return root;
}

const TITLE_TEXTS: Record<string, string> = { "Options:": "Flags:" };
const AFTER_HELP = `
The help of one command:  svc ctl help worker create
Exit codes: 0 done, 1 unexpected, 2 wrong usage, 3 not found, 4 not allowed, 5 conflict, 6 unreachable or try again,
7 declined, 8 what was waited for failed, 124 waited too long, 130 interrupted`;

// The parser speaks of options, we speak of flags, everywhere.
function rewriteParserMessage(text: string): string {
  return text.replace(/^error: /, "").replace(/^unknown option /, "unknown flag ")
    .replace(/^option '(?:-\w, )?(--[a-z-]+).*' argument missing/, "$1 needs a value");
}

/** `help <group> <command>` as `<group> <command> --help`; what does not exist is left to be refused by its name. */
async function rewriteHelp(args: string[]): Promise<string[]> {
  const [help, group, name] = args.filter((arg) => arg !== "--json");
  if (help !== "help" || group === undefined || group.startsWith("-")) return args;
  if (!Object.hasOwn(GROUPS, group)) return [group];
  const specs = await loadGroup(group);
  if (!Array.isArray(specs) || name === undefined) return [group, "--help"];
  return specs.some((spec) => spec.name === name) ? [group, name, "--help"] : [group, name];
}

async function addGroup(root: Command, name: string, found: ParseOptions["found"]): Promise<void> {
  const group = await loadGroup(name);
  if (!Array.isArray(group)) return addCommand(root, group, found);
  const parent = root.command(name).description(`${GROUPS[name]?.about ?? ""}.`);
  parent.usage("<command> [arguments] [flags]").helpCommand("help [command]", "Print the help of a command");
  addOptions(parent, SHARED_OPTIONS);
  for (const spec of group) addCommand(parent, spec, found);
}

function addCommand(parent: Command, spec: AnyCommand, found: ParseOptions["found"]): void {
  const leaf = parent.command(spec.name).summary(spec.about).description(`${spec.about}.`);
  const args = (spec.args ?? []).map((arg) => arg.startsWith("[") ? arg : `<${arg}>`);
  for (const arg of args) leaf.argument(arg);
  leaf.usage([...args, "[flags]"].join(" "));
  addOptions(leaf, { ...spec.options, ...SHARED_OPTIONS });
  const examples = spec.examples.map((example) => `  $ svc ctl ${example}`).join("\n");
  leaf.addHelpText("after", `\nExamples:\n${examples}`);
  leaf.action((...parts: unknown[]) => {
    const positional = parts.slice(0, args.length).filter((part) => part !== undefined).map(String);
    found({ spec, args: positional, given: collectSharedFlags(leaf) });
  });
}

function addOptions(target: Command, options: Record<string, OptionSpec>): void {
  for (const [, option] of Object.entries(options)) {
    const choices = option.choices === undefined ? "" : ` (${option.choices.join(", ")})`;
    const fallback = option.default === undefined ? "" : ` (default ${option.default})`;
    const needed = option.required ? ` (needed${option.unless ? ` without ${option.unless}` : ""})` : "";
    const about = option.about + choices + fallback + needed;
    if (option.type === "list") {
      target.option(option.flags, about, (value: string, all: string[] = []) => [...all, value]);
    } else if (option.multiple || option.type === "words") {
      target.option(
        option.flags,
        about,
        (value, all?: string) => all === undefined ? value : `${all},${value}`,
      );
    } else if (option.type === "flag") target.option(option.flags, about);
    else target.option(option.flags, about, refuseTwice(longFlag(option)));
  }
}

// It is unknown which of two values is meant (contract 8.7).
function refuseTwice(flag: string): (value: string, before: string | undefined) => string {
  return (value, before) => {
    if (before !== undefined) throw usageError(`${flag} is given twice`);
    return value;
  };
}

/** The flags of every command, which may stand behind `ctl`, behind the group or behind the command: in one place only. */
function collectSharedFlags(leaf: Command): Record<string, unknown> {
  const levels = [leaf.parent?.parent, leaf.parent, leaf].map((level) => level?.opts() ?? {});
  for (const flag of ["config", "ca", "reconnect"]) {
    if (levels.filter((given) => given[flag] !== undefined).length > 1) {
      throw usageError(`--${flag} is given twice`);
    }
  }
  return Object.assign({}, ...levels);
}
