import { Command, CommanderError } from "commander";
import { type AnyCommand, longFlag, type OptionSpec, SHARED_OPTIONS } from "./command.ts";
import { EXIT, Exit, EXITS, usageError } from "../terminal/exit.ts";
import { GROUPS, loadGroup } from "./groups.ts";
import type { Io } from "../terminal/io.ts";
import { suggest } from "./suggestion.ts";
import type { ParsedLine } from "./plain_line.ts";

/**
 * Parses a command line with commander, prints help, and explains errors. Returns null after help. Throws a usage
 * error. Must agree with parsePlainLine() on every line that both can read.
 */
export async function parseLine(args: string[], io: Io, json: boolean): Promise<ParsedLine | null> {
  const words = await rewriteHelp(args);
  const found: { line: ParsedLine | null } = { line: null };
  const root = await buildProgram(words, io, (line) => found.line = line);
  try {
    await root.parseAsync(words, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Exit code 0 means requested help. A group without a command has printed its help.
    if (error.exitCode === 0) return null;
    if (error.code === "commander.help" && !json) throw new Exit(EXIT.usage);
    const meant = await suggest(error.code, error.message, words);
    const message = rewriteParserMessage(error.message).replace(/\n+/g, " ").replace(/\.$/, "");
    throw usageError(meant === "" ? message : `${message}. ${meant}`);
  }
  return found.line;
}

type OnFound = (line: ParsedLine) => void;

async function buildProgram(args: string[], io: Io, found: OnFound): Promise<Command> {
  const root = new Command("svc ctl");
  // Subcommands inherit this setting only when they are added later, and would else end the process (facts, Deno 10).
  root.exitOverride().configureOutput({
    writeOut: (text) => io.out(text),
    writeErr: (text) => io.err(text),
    outputError: () => {},
    getOutHelpWidth: () => io.width || 100,
    getErrHelpWidth: () => io.width || 100,
  });
  root.configureHelp({
    styleTitle: (title) => TITLE_TEXTS[title] ?? title,
    subcommandTerm: (one) =>
      [
        one.name(),
        ...one.registeredArguments.map((arg) => {
          const name = `${arg.name()}${arg.variadic ? "..." : ""}`;
          return arg.required ? `<${name}>` : `[${name}]`;
        }),
      ]
        .join(" "),
  });
  root.description("Control a running service.").usage("<group> <command> [arguments] [flags]");
  root.helpOption("-h, --help", "print help").addHelpText("after", AFTER_HELP);
  root.helpCommand("help [group] [command]", "Print the help of a command");
  root.showSuggestionAfterError(false).enablePositionalOptions();
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
Run \`svc ctl help worker create\` for the help of one command.

Exit codes:
${Object.values(EXITS).map(({ code, meaning }) => `  ${String(code).padEnd(3)}  ${meaning}`).join("\n")}`;

// commander says "option" where svc says "flag".
function rewriteParserMessage(text: string): string {
  return text.replace(/^error: /, "").replace(/^unknown option /, "unknown flag ")
    // Does not repeat the arguments, one of which may be a secret.
    .replace(/^(too many arguments.* but got \d+): .*/, "$1.")
    .replace(/^option '(?:-\w, )?(--[a-z-]+).*' argument missing/, "$1 needs a value");
}

/** Rewrites `help <group> <command>` as `<group> <command> --help`. The parser refuses unknown names. */
async function rewriteHelp(args: string[]): Promise<string[]> {
  const [help, group, name] = args.filter((arg) => arg !== "--json");
  if (help !== "help" || group === undefined || group.startsWith("-")) return args;
  if (!Object.hasOwn(GROUPS, group)) return [group];
  const specs = await loadGroup(group);
  if (!Array.isArray(specs) || name === undefined) return [group, "--help"];
  return specs.some((spec) => spec.name === name) ? [group, name, "--help"] : [group, name];
}

async function addGroup(root: Command, name: string, found: OnFound): Promise<void> {
  const group = await loadGroup(name);
  if (!Array.isArray(group)) return addCommand(root, group, found);
  const parent = root.command(name).description(`${GROUPS[name]?.about ?? ""}.`);
  parent.usage("<command> [arguments] [flags]").helpCommand("help [command]", "Print the help of a command");
  addOptions(parent, SHARED_OPTIONS);
  for (const spec of group) addCommand(parent, spec, found);
}

function addCommand(parent: Command, spec: AnyCommand, found: OnFound): void {
  const leaf = parent.command(spec.name, { isDefault: spec.isDefault ?? false }).summary(spec.about)
    .description(`${spec.about}.`);
  const args = (spec.args ?? []).map((arg) => arg.startsWith("[") ? arg : `<${arg}>`);
  for (const arg of args) leaf.argument(arg);
  leaf.usage([...args, "[flags]"].join(" "));
  addOptions(leaf, { ...spec.options, ...SHARED_OPTIONS });
  const examples = spec.examples.map((example) => `  $ svc ctl ${example}`).join("\n");
  leaf.addHelpText("after", `\nExamples:\n${examples}`);
  leaf.action((...parts: unknown[]) => {
    const positional = parts.slice(0, args.length).flat().filter((part) => part !== undefined).map(String);
    found({ spec, args: positional, given: collectSharedFlags(leaf) });
  });
}

function addOptions(target: Command, options: Record<string, OptionSpec>): void {
  for (const [, option] of Object.entries(options)) {
    const choices = option.choices === undefined ? "" : ` (${option.choices.join(", ")})`;
    const fallback = option.default === undefined ? "" : ` (default ${option.default})`;
    const needed = option.required ? ` (required${option.unless ? ` without ${option.unless}` : ""})` : "";
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

// Two values of one flag are ambiguous (contract 8.7).
function refuseTwice(flag: string): (value: string, before: string | undefined) => string {
  return (value, before) => {
    if (before !== undefined) throw usageError(`${flag} can be used only once`);
    return value;
  };
}

/** Collects the flags of every command, which may follow `ctl`, the group or the command. */
function collectSharedFlags(leaf: Command): Record<string, unknown> {
  const levels = [leaf.parent?.parent, leaf.parent, leaf].map((level) => level?.opts() ?? {});
  for (const flag of ["config", "ca", "reconnect"]) {
    if (levels.filter((given) => given[flag] !== undefined).length > 1) {
      throw usageError(`--${flag} can be used only once`);
    }
  }
  return Object.assign({}, ...levels);
}
