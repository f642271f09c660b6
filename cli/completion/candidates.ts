import { load } from "../../src/base/lazy_import.ts";
import { type AnyCommand, longFlag, type OptionSpec, SHARED_OPTIONS } from "../commands/command.ts";
import { GROUPS, loadGroup } from "../commands/groups.ts";
import type { Io } from "../terminal/io.ts";
import { TOP_COMMANDS } from "../commands/top_commands.ts";

/** A completion of the word under the cursor. */
export interface Candidate {
  value: string;
  about: string;
}

/** Returns the completions of the last of `words`, which follow `svc`. Returns none after any error. */
export async function findCandidates(words: string[], io: Io): Promise<Candidate[]> {
  const current = words.at(-1) ?? "";
  try {
    const found = await findTopCandidates(words, current, io);
    const seen = new Set<string>();
    return found.filter(({ value }) =>
      value.startsWith(current) && !seen.has(value) && seen.add(value) !== undefined
    );
  } catch {
    return [];
  }
}

async function findTopCandidates(words: string[], current: string, io: Io): Promise<Candidate[]> {
  const [first = "", ...rest] = words;
  if (words.length < 2) {
    return toCandidates(Object.entries(TOP_COMMANDS).map(([name, { about }]) => [name, about]));
  }
  if (first === "help" && rest[0] === "ctl" && rest.length > 1) {
    return await completeControl(["help", ...rest.slice(1)], io);
  }
  if (first === "ctl") return await completeControl(rest, io);
  const place = Object.hasOwn(TOP_COMMANDS, first) ? TOP_COMMANDS[first] : undefined;
  if (place === undefined) return [];
  const { options = [], subcommands: after = {}, files = false } = place;
  const typed = parsePrefix(rest, options);
  if (typed.option !== null) return addPrefix(typed, await listValues(typed, [], io));
  if (current.startsWith("-")) return listFlags(options, typed.given);
  if (typed.positional.length > 0) return [];
  return files ? listFiles(current) : toCandidates(Object.entries(after));
}

async function completeControl(words: string[], io: Io): Promise<Candidate[]> {
  const current = words.at(-1) ?? "";
  const shared = Object.values(SHARED_OPTIONS);
  const early = parsePrefix(words, shared);
  const helping = early.positional[0] === "help";
  const [groupName, commandName] = helping ? early.positional.slice(1) : early.positional;
  if (groupName === undefined) {
    if (early.option !== null) return addPrefix(early, await listValues(early, [], io));
    if (current.startsWith("-")) return listFlags(shared, early.given);
    const groups = toCandidates(Object.entries(GROUPS).map(([name, { about }]) => [name, about]));
    return helping ? groups : [...groups, { value: "help", about: "Print the help of a command" }];
  }
  if (!Object.hasOwn(GROUPS, groupName)) return [];
  const group = await loadGroup(groupName);
  const isGroup = Array.isArray(group);
  const spec = isGroup ? group.find(({ name }) => name === commandName) : group;
  if (spec === undefined || helping) {
    if (commandName !== undefined || !isGroup) return [];
    if (current.startsWith("-")) return listFlags(shared, early.given);
    return toCandidates(group.map(({ name, about }) => [name, about]));
  }
  return await completeCommand(groupName, spec, words, io);
}

async function completeCommand(
  group: string,
  spec: AnyCommand,
  words: string[],
  io: Io,
): Promise<Candidate[]> {
  const options = [...Object.values(spec.options), ...Object.values(SHARED_OPTIONS)];
  const typed = parsePrefix(words, options);
  if (typed.option !== null) return addPrefix(typed, await listValues(typed, words, io));
  if (!typed.ended && (words.at(-1) ?? "").startsWith("-")) return listFlags(options, typed.given);
  const behind = typed.positional.slice(group === spec.name ? 1 : 2);
  const arg = spec.args?.[behind.length];
  if (arg === undefined) return [];
  if (arg === "file") return listFiles(words.at(-1) ?? "");
  const kind = arg === "id" || arg === "id|name"
    ? spec.refs?.[arg] ?? group
    : arg === "worker"
    ? "worker"
    : "";
  return await listServerValues(kind, words, io);
}

/** The part of a command line before the cursor. */
interface CommandPrefix {
  positional: string[];
  given: Set<string>;
  /** The flag whose value the user is typing, and the part of the last word before that value. */
  option: OptionSpec | null;
  before: string;
  /** Whether `--` ended the flags. */
  ended: boolean;
}

function parsePrefix(words: string[], options: readonly OptionSpec[]): CommandPrefix {
  const typed: CommandPrefix = { positional: [], given: new Set(), option: null, before: "", ended: false };
  const known = (word: string) =>
    options.find((option) => option.flags.split(/[ ,]+/).includes(word) && word.startsWith("-"));
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    const isLast = at === words.length - 1;
    const [name = "", inline] = word.split(/=(.*)/s);
    const option = typed.ended ? undefined : known(name);
    if (isLast) {
      if (option !== undefined && inline !== undefined && option.type !== "flag") {
        typed.option = option;
        typed.before = `${name}=`;
      }
    } else if (option !== undefined) {
      typed.given.add(longFlag(option));
      if (option.type === "flag" || inline !== undefined) continue;
      if (at + 1 === words.length - 1) typed.option = option;
      at++;
    } else if (word === "--") typed.ended = true;
    else if (typed.ended || !word.startsWith("-")) typed.positional.push(word);
  }
  return typed;
}

function listFlags(options: readonly OptionSpec[], given: ReadonlySet<string>): Candidate[] {
  return options
    .filter((option) => !given.has(longFlag(option)) || option.type === "list" || option.type === "words")
    .map((option) => ({ value: longFlag(option), about: option.about }));
}

/** Extends values to whole words: after `--flag=`, and after the values before the last comma. */
function addPrefix({ before }: CommandPrefix, found: Candidate[]): Candidate[] {
  return before === "" ? found : found.map(({ value, about }) => ({ value: before + value, about }));
}

async function listValues({ option, before }: CommandPrefix, words: string[], io: Io): Promise<Candidate[]> {
  if (option === null) return [];
  const typed = (words.at(-1) ?? "").slice(before.length);
  if (/<(path|file)>/.test(option.flags)) return listFiles(typed);
  const found = option.choices?.map((choice) => ({ value: choice, about: "" })) ??
    await listServerValues(option.completion ?? "", words, io);
  if (!option.multiple && option.type !== "words") return found;
  const whole = typed.slice(0, typed.lastIndexOf(",") + 1);
  const there = whole.split(",");
  return found.filter(({ value }) => !there.includes(value))
    .map(({ value, about }) => ({ value: whole + value, about }));
}

// Imported lazily, so that only values from the server or the configuration load this module.
async function listServerValues(kind: string, words: string[], io: Io): Promise<Candidate[]> {
  if (kind === "") return [];
  const { listCompletionValues } = await load<typeof import("./completion_values.ts")>(
    "./completion_values.ts",
    import.meta.url,
  );
  return toCandidates(await listCompletionValues(kind, words, io));
}

function toCandidates(entries: (readonly [string, string])[]): Candidate[] {
  return entries.map(([value, about]) => ({ value, about }));
}

const FILES_MAX = 200;

// The scripts turn off file completion of the shell.
function listFiles(word: string): Candidate[] {
  const folder = word.includes("/") ? word.slice(0, word.lastIndexOf("/") + 1) : "";
  const found: Candidate[] = [];
  for (const entry of Deno.readDirSync(folder || ".")) {
    const path = folder + entry.name + (entry.isDirectory ? "/" : "");
    const hidden = entry.name.startsWith(".") && !word.slice(folder.length).startsWith(".");
    if (path.startsWith(word) && !hidden && found.length < FILES_MAX) found.push({ value: path, about: "" });
  }
  return found.sort((a, b) => a.value < b.value ? -1 : 1);
}
