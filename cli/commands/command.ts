import type { Client } from "../client/client.ts";
import { usageError } from "../terminal/exit.ts";
import type { Io } from "../terminal/io.ts";
import type { RefKind } from "../client/resource_ref.ts";
import type { Output } from "../terminal/output.ts";
import { parseTime } from "./time.ts";

/** One flag of a command. */
export interface OptionSpec {
  /** commander's form: `-n, --name <name>`, `--no-recursive`. */
  flags: string;
  about: string;
  /** text, whole number, time, switch, a text that may be repeated, or words separated by commas. */
  type: "text" | "int" | "time" | "flag" | "list" | "words";
  choices?: readonly string[];
  required?: boolean;
  /** A flag that takes its place, such as `--batch`: beside that one it is neither needed nor taken, and `run` has to look at that one first. */
  unless?: string;
  /** Values separated by commas, which may also be given by repeating the flag, sent as they are. */
  multiple?: boolean;
  /** Whether "" means something here (clears a field); elsewhere it is refused. */
  allowEmpty?: boolean;
  /** What completion offers for it: a kind of cli/offers.ts, such as `worker` for ids and `worker_name` for names. */
  completion?: string;
  /** Takes the id of such a thing, its name, or an ending of its id; `run` gets the id (contract 8.11). */
  ref?: RefKind;
  /** Said in the help. */
  default?: string | number;
}

type Value<S extends OptionSpec> = S["type"] extends "int" | "time" ? number
  : S["type"] extends "flag" ? boolean
  : S["type"] extends "list" | "words" ? string[]
  : S extends { multiple: true } ? string
  : S extends { choices: readonly (infer Choice)[] } ? Choice
  : string;

/** The values of a command's flags, by name; absent ones are undefined. */
export type Values<O extends Record<string, OptionSpec>> = {
  [K in keyof O]: O[K]["required"] extends true ? Value<O[K]> : Value<O[K]> | undefined;
};

/** What a running command works with. */
export interface Context<O extends Record<string, OptionSpec> = Record<string, OptionSpec>> {
  io: Io;
  client: Client;
  out: Output;
  /** Positional arguments, in order. */
  args: string[];
  options: Values<O>;
  /** The value of --config. */
  configFlag: string | undefined;
  /** Says something on stderr. */
  note: (text: string) => void;
  /** Names on stderr what was made, before it is waited for: `accepted <id>`, with --json a line of JSON (contract 8.6). */
  reportId: (what: "accepted" | "session", id: string, more?: string) => void;
}

/** A command: data, and one function that runs it. */
interface CommandSpec<O extends Record<string, OptionSpec> = Record<string, OptionSpec>> {
  name: string;
  about: string;
  /** Names of positional arguments, all required unless in brackets. */
  args?: string[];
  /** Of which kind the things are that arguments name; `run` gets their ids (contract 8.11). */
  refs?: Record<string, RefKind>;
  options: O;
  examples: string[];
  run: (context: Context<O>) => Promise<void>;
}

/** Declares a command; only here so that `run` knows the types of its options. */
export function command<const O extends Record<string, OptionSpec>>(spec: CommandSpec<O>): AnyCommand {
  return spec as unknown as AnyCommand;
}

export type AnyCommand = CommandSpec<Record<string, OptionSpec>>;

type SnakeCase<Name> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : "";

/** The fields of a request that options are sent as. */
type Fields<O> =
  & { [K in keyof O as undefined extends O[K] ? never : SnakeCase<K>]: O[K] }
  & { [K in keyof O as undefined extends O[K] ? SnakeCase<K> : never]?: Exclude<O[K], undefined> };

/** Options as the fields of a query or a body that have their names: `pageSize` is `page_size`. Absent ones are left out. */
export function toFields<O extends object>(options: O): Fields<O> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  ) as Fields<O>;
}

/** Flags of every command, which count wherever they stand. */
export const SHARED_OPTIONS = {
  config: {
    flags: "-c, --config <path>",
    about: "configuration of the service",
    type: "text",
    default: "config.yaml",
  },
  ca: {
    flags: "--ca <file>",
    about: "certificates to trust beside the system's, for a service behind https",
    type: "text",
  },
  reconnect: {
    flags: "--reconnect <duration>",
    about: "how long to try again when the connection is lost in between",
    type: "text",
    default: "60s",
  },
  json: { flags: "--json", about: "print the server's JSON", type: "flag" },
  quiet: { flags: "-q, --quiet", about: "print ids only", type: "flag" },
} as const satisfies Record<string, OptionSpec>;

/** Checks what the parser took as text and gives every flag its type. Throws a usage error naming the flag. */
export function parseValues(
  spec: AnyCommand,
  given: Record<string, unknown>,
): Values<Record<string, OptionSpec>> {
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(spec.options)) {
    const flag = longFlag(option);
    const value = findGivenValue(given, flag);
    const { unless } = option;
    const replaced = unless !== undefined && findGivenValue(given, unless) !== undefined;
    if (replaced && value !== undefined) throw usageError(`${flag} does not go with ${unless}`);
    if (value === undefined) {
      if (option.required && !replaced) throw usageError(`${flag} is needed`);
      continue;
    }
    values[name] = parseValue(option, flag, value);
  }
  return values as Values<Record<string, OptionSpec>>;
}

// The parser names values after their flags; a flag that switches something off (`--no-recursive`) counts when it is given.
function findGivenValue(given: Record<string, unknown>, flag: string): unknown {
  const [, no = "", name = ""] = /^--(no-)?(.*)$/.exec(flag) ?? [];
  const value = given[name.replace(/-(\w)/g, (_match, letter: string) => letter.toUpperCase())];
  return no !== "" && value !== false ? undefined : value;
}

function parseValue(option: OptionSpec, flag: string, value: unknown): unknown {
  if (option.type === "flag") return value;
  if (option.type === "list") return value;
  const text = String(value);
  if (text === "" && !option.allowEmpty) throw usageError(`${flag} must not be empty`);
  if (option.choices !== undefined) {
    const wrong = text.split(",").find((part) => !option.choices?.includes(part));
    if (wrong !== undefined) {
      throw usageError(`${flag}: ${JSON.stringify(wrong)} is not one of ${option.choices.join(", ")}`);
    }
  }
  if (option.type === "text") return text;
  if (option.type === "time") return parseTime(text, flag);
  if (option.type === "words") return text === "" ? [] : text.split(",").map((part) => part.trim());
  if (!/^-?\d{1,19}$/.test(text)) throw usageError(`${flag}: ${JSON.stringify(text)} is not a whole number`);
  return Number(text);
}

/** `--page-size` of `--page-size <n>`. */
export function longFlag(option: OptionSpec): string {
  return /--[a-z-]+/.exec(option.flags)?.[0] ?? option.flags;
}

/** The flag that a field of a request came from, such as `--department` of `departments.0`; null when there is none. */
export function findFlag(field: string, spec: AnyCommand): string | null {
  const [name = ""] = field.split(".");
  const option = spec.options[name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase())];
  return option === undefined ? null : longFlag(option);
}
