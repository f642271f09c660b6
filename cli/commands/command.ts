import type { Client } from "../client/client.ts";
import { usageError } from "../terminal/exit.ts";
import type { Io } from "../terminal/io.ts";
import type { RefKind } from "../client/resource_ref.ts";
import type { Output } from "../terminal/output.ts";
import { parseTime } from "./time.ts";

/** A flag of a command. */
export interface OptionSpec {
  /** The form that commander reads: `-n, --name <name>`, `--no-recursive`. */
  flags: string;
  about: string;
  /** `list` is a text that may be repeated; `words` are separated by commas. */
  type: "text" | "int" | "time" | "flag" | "list" | "words";
  choices?: readonly string[];
  required?: boolean;
  /** Another flag, such as `--batch`. With that flag, this flag is neither required nor allowed. */
  unless?: string;
  /** Values separated by commas or given by repeating the flag, sent as they are. */
  multiple?: boolean;
  /** Whether "" is valid, to clear a field. */
  allowEmpty?: boolean;
  /** Where completion finds values: a key of `SOURCES` in completion_values.ts. */
  completion?: string;
  /** The kind of thing that the value names by ID, name or ID ending. `run` gets the ID (contract 8.11). */
  ref?: RefKind;
  /** Whether a value that names no such thing is sent as it is. */
  takesOthers?: boolean;
  /** Text that only the help shows. */
  default?: string | number;
}

type OptionDetails = Partial<Omit<OptionSpec, "flags" | "about" | "type">>;

function buildOption<const T extends OptionSpec["type"]>(type: T) {
  return <const D extends OptionDetails = Record<never, never>>(flags: string, about: string, details?: D) =>
    ({ flags, about, type, ...details }) as { flags: string; about: string; type: T } & D;
}

/** Declares the flags of a command, by type: `option.int("--page <n>", "page number")`. */
export const option = {
  text: buildOption("text"),
  int: buildOption("int"),
  time: buildOption("time"),
  flag: buildOption("flag"),
  list: buildOption("list"),
  words: buildOption("words"),
};

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

/** A running command without its options. */
export interface BaseContext {
  io: Io;
  client: Client;
  out: Output;
  args: string[];
  /** The arguments as typed, for questions: a name where `args` has its ID. */
  typed: string[];
  /** The value of --config. */
  configFlag: string | undefined;
  /** Prints a line on stderr. */
  note: (text: string) => void;
  /** Prints the ID of a new thing on stderr before a wait: `accepted <id>`, with --json as JSON (contract 8.6). */
  reportId: (what: "accepted" | "session", id: string, more?: string) => void;
}

export interface Context<O extends Record<string, OptionSpec> = Record<string, OptionSpec>>
  extends BaseContext {
  options: Values<O>;
}

/** A command: data, and one function that runs it. */
interface CommandSpec<O extends Record<string, OptionSpec> = Record<string, OptionSpec>> {
  name: string;
  about: string;
  /** Runs for the group without a command: `inbox` is `inbox list`. */
  isDefault?: boolean;
  /** Names of positional arguments, all required unless in brackets. The last one may be a list, such as `[command...]`. */
  args?: string[];
  /** The kind of thing that an argument names. `run` gets its ID (contract 8.11). */
  refs?: Record<string, RefKind>;
  options: O;
  examples: string[];
  run: (context: Context<O>) => Promise<void>;
}

/** Declares a command. The call gives `run` the types of its options. */
export function command<const O extends Record<string, OptionSpec> = Record<never, OptionSpec>>(
  spec: Omit<CommandSpec<O>, "options"> & { options?: O },
): AnyCommand {
  return { options: {}, ...spec } as unknown as AnyCommand;
}

export type AnyCommand = CommandSpec<Record<string, OptionSpec>>;

type SnakeCase<Name> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : "";

/** The fields of a request that has these options. */
type Fields<O> =
  & { [K in keyof O as undefined extends O[K] ? never : SnakeCase<K>]: O[K] }
  & { [K in keyof O as undefined extends O[K] ? SnakeCase<K> : never]?: Exclude<O[K], undefined> };

/** Converts options to the fields of a request: `pageSize` to `page_size`. Drops absent ones. */
export function toFields<O extends object>(options: O): Fields<O> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    given.map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  ) as Fields<O>;
}

/** Flags of every command. They may stand anywhere on the command line. */
export const SHARED_OPTIONS = {
  config: option.text("-c, --config <path>", "configuration file of the service", { default: "config.yaml" }),
  ca: option.text("--ca <file>", "PEM file of extra certificates to trust for an https service"),
  reconnect: option.text("--reconnect <duration>", "keep retrying a lost connection for this long", {
    default: "60s",
  }),
  json: option.flag("--json", "print the server's JSON"),
  quiet: option.flag("-q, --quiet", "print only IDs"),
} satisfies Record<string, OptionSpec>;

/** Converts flag values from text to their types. Throws a usage error naming the flag. */
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
    if (replaced && value !== undefined) throw usageError(`${flag} cannot be used with ${unless}`);
    if (value === undefined) {
      if (option.required && !replaced) throw usageError(`${flag} is required`);
      continue;
    }
    values[name] = parseValue(option, flag, value);
  }
  return values as Values<Record<string, OptionSpec>>;
}

// commander stores `--no-recursive` as `recursive: false`.
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

/** Returns the long form of a flag, such as `--page-size`. Of two long forms the last one names the option. */
export function longFlag(option: OptionSpec): string {
  return option.flags.match(/--[a-z-]+/g)?.at(-1) ?? option.flags;
}

/** Returns the flag that set a field of a request, such as `--department` for `departments.0`, or null. */
export function findFlag(field: string, spec: AnyCommand): string | null {
  const [name = ""] = field.split(".");
  const option = spec.options[name.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase())];
  return option === undefined ? null : longFlag(option);
}
