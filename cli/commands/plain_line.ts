import { type AnyCommand, longFlag, type OptionSpec, SHARED_OPTIONS } from "./command.ts";
import { GROUPS, loadGroup } from "./groups.ts";

/** A parsed command line: the command, its arguments, and the text of its flags by name. */
export interface ParsedLine {
  spec: AnyCommand;
  args: string[];
  given: Record<string, unknown>;
}

/**
 * Parses a simple command line: a group, a command, known flags and the right number of arguments. Returns null for
 * any other, such as help and mistakes, which parseLine() explains.
 */
export async function parsePlainLine(words: string[]): Promise<ParsedLine | null> {
  const [group = "", ...rest] = words;
  if (!Object.hasOwn(GROUPS, group)) return null;
  const specs = await loadGroup(group);
  if (!Array.isArray(specs)) return parseWords(specs, rest);
  const [name, ...behind] = rest;
  const spec = specs.find((one) => one.name === name);
  if (spec !== undefined) return parseWords(spec, behind);
  const fallback = name === undefined || isFlag(name) ? specs.find((one) => one.isDefault) : undefined;
  return fallback === undefined ? null : parseWords(fallback, rest);
}

function parseWords(spec: AnyCommand, words: string[]): ParsedLine | null {
  const args: string[] = [];
  const given: Record<string, unknown> = {};
  const options = Object.values<OptionSpec>({ ...spec.options, ...SHARED_OPTIONS });
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? "";
    if (!isFlag(word)) {
      args.push(word);
      continue;
    }
    const [, flag = "", text] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [word, word];
    const option = options.find(({ flags }) => flags.split(/[ ,]+/).includes(flag));
    if (option === undefined) return null;
    const value = option.type === "flag" ? text === undefined || null : text ?? words[++at];
    if (value === null || value === undefined) return null;
    // A value that looks like a flag may be a flag after a forgotten value; `-7d` is a time.
    if (text === undefined && value !== true && isFlag(value) && !/^-\d/.test(value)) return null;
    if (!storeFlag(given, option, value)) return null;
  }
  const names = spec.args ?? [];
  const needed = names.filter((name) => !name.startsWith("[")).length;
  const most = /\.\.\.\]?$/.test(names.at(-1) ?? "") ? Infinity : names.length;
  return args.length < needed || args.length > most ? null : { spec, args, given };
}

function isFlag(word: string): boolean {
  return word.length > 1 && word.startsWith("-");
}

/**
 * Stores a value under the name that parseValues() expects. Returns false for a second value of a flag that takes
 * one.
 */
function storeFlag(given: Record<string, unknown>, option: OptionSpec, value: string | true): boolean {
  const [, no, long = ""] = /^--(no-)?(.*)$/.exec(longFlag(option)) ?? [];
  const name = long.replace(/-(\w)/g, (_match, letter: string) => letter.toUpperCase());
  const before = given[name];
  if (value === true) given[name] = no === undefined;
  else if (option.type === "list") given[name] = [...(Array.isArray(before) ? before : []), value];
  else if (before === undefined) given[name] = value;
  else if (option.multiple || option.type === "words") given[name] = `${before},${value}`;
  else return false;
  return true;
}
