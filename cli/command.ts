import type { Client } from "./client.ts";
import { usage } from "./exit.ts";
import type { Io } from "./io.ts";
import type { Output } from "./output.ts";

/** One flag of a command. */
export interface OptionSpec {
  /** commander's form: `-n, --name <name>`, `--no-recursive`. */
  flags: string;
  about: string;
  /** text, whole number, switch, or a text that may be repeated. */
  type: "text" | "int" | "flag" | "list";
  choices?: readonly string[];
  required?: boolean;
  /** Values separated by commas, which may also be given by repeating the flag. */
  several?: boolean;
  /** Whether "" means something here (clears a field); elsewhere it is refused. */
  mayBeEmpty?: boolean;
  /** Said in the help. */
  standard?: string | number;
}

type Value<S extends OptionSpec> = S["type"] extends "int" ? number : S["type"] extends "flag" ? boolean
: S["type"] extends "list" ? string[]
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
}

/** A command: data, and one function that runs it. */
export interface CommandSpec<O extends Record<string, OptionSpec> = Record<string, OptionSpec>> {
  name: string;
  about: string;
  /** Names of positional arguments, all required unless in brackets. */
  args?: string[];
  options: O;
  examples: string[];
  run: (context: Context<O>) => Promise<void>;
}

/** Declares a command; only here so that `run` knows the types of its options. */
export function command<const O extends Record<string, OptionSpec>>(spec: CommandSpec<O>): AnyCommand {
  return spec as unknown as AnyCommand;
}

export type AnyCommand = CommandSpec<Record<string, OptionSpec>>;

/** Flags of every command, declared on each so that completion offers them (facts, Deno). */
export const SHARED_OPTIONS = {
  config: {
    flags: "-c, --config <path>",
    about: "configuration of the service",
    type: "text",
    standard: "config.yaml",
  },
  json: { flags: "--json", about: "print the server's JSON", type: "flag" },
  quiet: { flags: "-q, --quiet", about: "print ids only", type: "flag" },
} as const satisfies Record<string, OptionSpec>;

/** Paging flags of a list (interface 4.2). */
export function pageOptions(max: number) {
  return {
    page: { flags: "--page <n>", about: "which page", type: "int", standard: 1 },
    pageSize: { flags: "--page-size <n>", about: `rows per page, up to ${max}`, type: "int", standard: 50 },
  } as const satisfies Record<string, OptionSpec>;
}

/** Checks what the parser took as text and gives every flag its type. Throws a usage error naming the flag. */
export function checkedValues(
  spec: AnyCommand,
  given: Record<string, unknown>,
): Values<Record<string, OptionSpec>> {
  const values: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(spec.options)) {
    const value = given[name];
    const flag = longFlag(option);
    if (value === undefined) {
      if (option.required) throw usage(`${flag} is needed`);
      continue;
    }
    values[name] = checked(option, flag, value);
  }
  return values as Values<Record<string, OptionSpec>>;
}

const TIME_MAX_MS = 8_640_000_000_000_000;

function checked(option: OptionSpec, flag: string, value: unknown): unknown {
  if (option.type === "flag") return value;
  if (option.type === "list") return value;
  const text = String(value);
  if (text === "" && !option.mayBeEmpty) throw usage(`${flag} must not be empty`);
  if (option.choices !== undefined) {
    const wrong = text.split(",").find((part) => !option.choices?.includes(part));
    if (wrong !== undefined) {
      throw usage(`${flag}: ${JSON.stringify(wrong)} is not one of ${option.choices.join(", ")}`);
    }
  }
  if (option.type === "text") return text;
  // Times are int64 (interface 4.2). Beyond what a time can be, the furthest one means the same.
  if (!/^-?\d{1,19}$/.test(text)) throw usage(`${flag}: ${JSON.stringify(text)} is not a whole number`);
  return Math.min(Number(text), TIME_MAX_MS);
}

/** `--page-size` of `--page-size <n>`. */
export function longFlag(option: OptionSpec): string {
  return /--[a-z-]+/.exec(option.flags)?.[0] ?? option.flags;
}

/** The flag that a field of a request came from, such as `--department` of `departments.0`; null when there is none. */
export function flagOf(field: string, spec: AnyCommand): string | null {
  const [name = ""] = field.split(".");
  for (const one of [name, name.replace(/s$/, ""), name.replace(/_id$/, "")]) {
    const option = spec.options[one.replace(/_(\w)/g, (_match, letter: string) => letter.toUpperCase())];
    if (option !== undefined) return longFlag(option);
  }
  return null;
}

/** A comma-separated value as a list; "" is the empty list. */
export function commaList(value: string | undefined): string[] | undefined {
  if (value === undefined) return undefined;
  return value === "" ? [] : value.split(",").map((part) => part.trim());
}

/** Says on stderr when a list goes on: "50 of 312, use --page 2" (contract 6). */
export function noteMore(context: Context, shown: number, headers: Headers, page: number | undefined): void {
  if (headers.get("link") === null) return;
  context.note(`${shown} of ${headers.get("x-total-count")}, use --page ${(page ?? 1) + 1}`);
}
