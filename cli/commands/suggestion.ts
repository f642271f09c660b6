import { findClosest } from "../../src/domain/call/closest.ts";
import { type AnyCommand, longFlag, type OptionSpec, SHARED_OPTIONS } from "./command.ts";
import { GROUPS, loadGroup } from "./groups.ts";
import { TOP_COMMANDS } from "./top_commands.ts";

// Words of other programs, and what svc calls the same.
const SYNONYMS: Record<string, string> = {
  show: "get",
  describe: "get",
  info: "get",
  view: "get",
  ls: "list",
  rm: "delete",
  remove: "delete",
  add: "create",
  new: "create",
  edit: "update",
  set: "update",
  log: "logs",
  kill: "cancel",
  stop: "cancel",
};

/** Returns what a refused command line most likely means, or where its flags are listed, as a sentence, or "". */
export async function suggest(code: string, message: string, words: string[]): Promise<string> {
  const wrong = /'([^']*)'/.exec(message)?.[1] ?? "";
  const group = words.find((word) => Object.hasOwn(GROUPS, word));
  if (group === undefined) return code === "commander.unknownCommand" ? await suggestGroup(wrong) : "";
  const specs = await loadGroup(group);
  const names = words.slice(words.indexOf(group) + 1);
  const spec = Array.isArray(specs) ? findNamed(specs, names) : specs;
  if (code === "commander.unknownCommand" && Array.isArray(specs)) {
    return ask(findNames(wrong, specs.map(({ name }) => name)).map((name) => `svc ctl ${group} ${name}`));
  }
  if (spec === undefined) return "";
  const path = Array.isArray(specs) ? `${group} ${spec.name}` : group;
  if (code === "commander.unknownOption") {
    return suggestFlag(wrong, spec) || `Run \`svc ctl help ${path}\` for the flags.`;
  }
  return code === "commander.excessArguments" ? suggestQuotes(path, spec, names) : "";
}

const findNamed = (specs: AnyCommand[], words: string[]) =>
  specs.find(({ name }) => words.includes(name)) ?? specs.find(({ isDefault }) => isDefault);

function ask(meant: string[]): string {
  return meant.length === 0 ? "" : `Did you mean ${meant.map((one) => `\`${one}\``).join(" or ")}?`;
}

function findNames(word: string, names: string[]): string[] {
  const synonym = SYNONYMS[word];
  return synonym !== undefined && names.includes(synonym) ? [synonym] : findClosest(word, names);
}

const MEANT_MAX = 3;

/** Returns what an unknown command of `svc` itself most likely means, as a sentence, or "". */
export function suggestTopCommand(word: string): string {
  if (Object.hasOwn(GROUPS, word)) return ask([`svc ctl ${word}`]);
  const top = Object.keys(TOP_COMMANDS).map((name) => ({ name, path: `svc ${name}` }));
  const groups = Object.keys(GROUPS).map((name) => ({ name, path: `svc ctl ${name}` }));
  const all = [...top, ...groups];
  return ask(
    findClosest(word, all.map(({ name }) => name))
      .flatMap((close) => all.find(({ name }) => name === close)?.path ?? []),
  );
}

// A command without its group, such as `logs`, is more likely than a misspelled group.
async function suggestGroup(word: string): Promise<string> {
  if (Object.hasOwn(TOP_COMMANDS, word)) return ask([`svc ${word}`]);
  const exact: string[] = [];
  for (const group of Object.keys(GROUPS)) {
    const specs = await loadGroup(group);
    if (!Array.isArray(specs)) continue;
    const found = specs.find(({ name }) => name === word || name === SYNONYMS[word]);
    if (found !== undefined) exact.push(`svc ctl ${group} ${found.name}`);
  }
  if (exact.length > 0 && exact.length <= MEANT_MAX) return ask(exact);
  return ask(findClosest(word, Object.keys(GROUPS)).map((group) => `svc ctl ${group}`));
}

function suggestFlag(word: string, spec: AnyCommand): string {
  const flags = Object.values<OptionSpec>({ ...spec.options, ...SHARED_OPTIONS }).map((one) =>
    longFlag(one).slice(2)
  );
  return ask(findClosest(word.replace(/^-+/, "").replace(/=.*/s, ""), flags).map((flag) => `--${flag}`));
}

// The shell splits a text without quotes into words.
function suggestQuotes(path: string, spec: AnyCommand, words: string[]): string {
  const after = words.slice(words[0] === spec.name ? 1 : 0);
  const cron = after.indexOf("--cron");
  if (cron !== -1 || spec.args?.includes("cron")) {
    return `Quote the five fields of cron: ${cron === -1 ? "" : "--cron "}'0 9 * * 1-5'`;
  }
  const plain = dropFlags(after, spec);
  const [first = ""] = plain;
  if ((spec.args ?? []).length === 0 && spec.options.name?.required) {
    return ask([`svc ctl ${path} --name ${plain.length > 1 ? `'${plain.join(" ")}'` : first}`]);
  }
  const last = spec.args?.at(-1) ?? "";
  if (!last.includes("text")) return "";
  const before = plain.slice(0, (spec.args?.length ?? 1) - 1);
  const text = plain.slice(before.length).join(" ");
  return `Quote the text: svc ctl ${[path, ...before].join(" ")} '${text}'`;
}

function dropFlags(words: string[], spec: AnyCommand): string[] {
  const options = Object.values<OptionSpec>({ ...spec.options, ...SHARED_OPTIONS });
  const takesValue = (flag = "") =>
    options.some(({ flags, type }) => type !== "flag" && flags.split(/[ ,]+/).includes(flag));
  return words.filter((word, at) => !word.startsWith("-") && !takesValue(words[at - 1]));
}
