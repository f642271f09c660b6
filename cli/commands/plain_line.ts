import { type AnyCommand, longFlag, type OptionSpec, SHARED_OPTIONS } from "./command.ts";
import { GROUPS, loadGroup } from "./groups.ts";

/** A command line as it was read: the command, its arguments, and the text of its flags by their names. */
export interface ParsedLine {
  spec: AnyCommand;
  args: string[];
  given: Record<string, unknown>;
}

/**
 * Reads a command line of the plain kind: a group, a command, known flags, as many arguments as there must be. Returns null for
 * every other one: help, mistakes, and what is rarely written are left to parseLine(), which knows the words for it.
 */
export async function parsePlainLine(words: string[]): Promise<ParsedLine | null> {
  const [group = "", ...rest] = words;
  if (!Object.hasOwn(GROUPS, group)) return null;
  const specs = await loadGroup(group);
  if (!Array.isArray(specs)) return parseWords(specs, rest);
  const [name, ...behind] = rest;
  const spec = specs.find((one) => one.name === name);
  return spec === undefined ? null : parseWords(spec, behind);
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
    // A value that looks like a flag may be a flag whose value was forgotten; `-7d` is a time.
    if (text === undefined && value !== true && isFlag(value) && !/^-\d/.test(value)) return null;
    if (!storeFlag(given, option, value)) return null;
  }
  const names = spec.args ?? [];
  const needed = names.filter((name) => !name.startsWith("[")).length;
  return args.length < needed || args.length > names.length ? null : { spec, args, given };
}

function isFlag(word: string): boolean {
  return word.length > 1 && word.startsWith("-");
}

/** Keeps a flag's value by the name that parseValues() looks for; false when it was there and may be there once only. */
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
