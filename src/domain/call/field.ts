import { z } from "zod";
import { countBytes } from "../../base/bytes.ts";
import { memoize } from "../../base/memoize.ts";

// Default messages of all schemas. They say what a value must be (contract 1.7).
z.config({ customError: formatIssue });

const KINDS: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  array: "a list",
  object: "an object",
  record: "an object",
  null: "null",
};

function formatIssue(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is missing";
      // A repeated query parameter arrives as a list.
      if (issue.expected === "string" && Array.isArray(issue.input)) return "must be one string";
      return `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      return `must be ${issue.values.length > 1 ? "one of " : ""}${issue.values.join(", ")}`;
    case "too_small":
      if (issue.origin === "string" || issue.origin === "array" && issue.minimum === 1) {
        return "must not be empty";
      }
      return `must be ${issue.inclusive === false ? "more than" : "at least"} ${issue.minimum}`;
    case "too_big":
      return issue.origin === "array"
        ? `must be at most ${issue.maximum} entries`
        : `must be ${issue.inclusive === false ? "less than" : "at most"} ${issue.maximum}`;
    default:
      return undefined;
  }
}

/** Limits of text fields in UTF-8 bytes (contract 1.8). */
export const NAME_MAX_BYTES = 200;
export const DESCRIPTION_MAX_BYTES = 4_000;
export const KEY_MAX_BYTES = 256;
export const CONTENT_MAX_BYTES = 256 * 1024;

function isWithinBytes(text: string, max: number): boolean {
  // A code unit takes at most three bytes, so most texts need no encoding.
  return text.length * 3 <= max || countBytes(text) <= max;
}

/** A condition on a text and the error message when it fails. */
type Rule = readonly [holds: (value: string) => boolean, error: string];

// A single check for all rules: a schema for each rule slowed every start.
function buildText(bounds: { minLength?: number; maxLength: number }, rules: readonly Rule[]) {
  return z.string().check(({ value, issues }) => {
    for (const [holds, message] of rules) {
      if (!holds(value)) issues.push({ code: "custom", input: value, message, continue: true });
    }
  }).register(z.globalRegistry, bounds);
}

const buildTextRules = (max: number): Rule[] => [
  [(value) => value.isWellFormed(), "must be valid Unicode: it has a lone surrogate"],
  [(value) => isWithinBytes(value, max), `must be at most ${max} bytes`],
  [(value) => !value.includes("\0"), "must not contain the character NUL"],
];

// The last three characters are neither spaces nor ignorable, but show nothing: Braille, an object and a musical note.
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800\ufffc\u{1d159}]/u;
const BLANK = new RegExp(`^(\\s|${INVISIBLE.source})*$`, "u");

const buildLineRules = (max: number): Rule[] => [
  ...buildTextRules(max),
  [(value) => !BLANK.test(value), "must not be empty"],
  [(value) => !/[\p{Cc}\u2028\u2029]/u.test(value), "must not contain control characters"],
];

/**
 * Schema of free text up to `max` UTF-8 bytes. Refuses NUL, where many programs would cut the text, and lone surrogates,
 * which UTF-8 cannot encode: the stored text would differ from the sent one.
 */
export function text(max: number) {
  return buildText({ maxLength: max }, buildTextRules(max));
}

/** Schema of one visible line without control characters, including those of Unicode. */
export function line(max: number) {
  return buildText({ minLength: 1, maxLength: max }, buildLineRules(max));
}

/** Condition on names: invisible or direction-changing characters make two of them look alike (contract 8.1). */
export const VISIBLE_RULE: Rule = [
  (value) => !INVISIBLE.test(value),
  "must not contain invisible characters, such as U+200B or U+202E",
];

/** Schema of a name: one trimmed line without invisible characters (contract 8.1). */
export function nameText() {
  const bounds = { minLength: 1, maxLength: NAME_MAX_BYTES };
  return buildText(bounds, [
    ...buildLineRules(NAME_MAX_BYTES),
    VISIBLE_RULE,
  ]).overwrite((value) => value.trim()).register(z.globalRegistry, bounds);
}

/** Schema of non-blank text up to `max` UTF-8 bytes. */
export function content(max: number) {
  return buildText({ minLength: 1, maxLength: max }, [
    ...buildTextRules(max),
    [(value) => value.trim() !== "", "must not be empty"],
  ]);
}

// Has no flags, because the OpenAPI document contains the pattern, too.
const UUID = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$/;

/** Returns whether `value` is a UUID. Callers check ids before they use them in a query or a path (reliability PTH-5). */
export function isId(value: string): boolean {
  return UUID.test(value);
}

export const id = z.string().regex(UUID, { error: "must be a UUID" }).meta({ format: "uuid" });

export const time = z.int().min(0).max(8_640_000_000_000_000).meta({ description: "Unix ms" });

/** A session key: 1-256 characters without control characters. */
export const sessionKey = line(KEY_MAX_BYTES * 4)
  .refine((value) => [...value].length <= 256, { error: "must be at most 256 characters" })
  .meta({ minLength: 1, maxLength: 256 });

/** A session key in a filter. The prefix `cli:` with a message id exceeds 256 characters (contract 3, Task). */
export const sessionKeyFilter = line(KEY_MAX_BYTES * 4 + 16);

/** Session keys in a list filter. A row matches if it has any of them (contract 8.2). */
export const sessionKeysFilter = parseTextList(sessionKeyFilter);

/**
 * Schema of a list in a query, separated by commas or repeated (contract 1.5). Refuses empty items, so that a typo never
 * widens a filter.
 */
export function parseList<T extends z.ZodType<string>>(item: T) {
  return z.union([z.string(), z.array(z.string())])
    .transform((value) => (Array.isArray(value) ? value : [value]).flatMap((part) => part.split(",")))
    .pipe(z.array(item).min(1).max(100) as unknown as z.ZodType<z.output<T>[], string[]>)
    .meta({ type: "string", description: "one value, or several separated by commas" });
}

/** Schema as parseList(), for texts that may contain a comma, such as the ids of scripts: the whole text is also a value. */
export function parseTextList(item: z.ZodType<string> = z.string().min(1)) {
  return z.union([z.string(), z.array(z.string())])
    .transform((value) => (Array.isArray(value) ? value : [value]).flatMap(splitValue))
    .pipe(z.array(item).min(1).max(100) as unknown as z.ZodType<string[], string[]>)
    .meta({ type: "string", description: "one value, or several separated by commas" });
}

function splitValue(value: string): string[] {
  return value.includes(",") ? [value, ...value.split(",")] : [value];
}

/** Schema of an integer in a query, decimal digits only. */
export function parseInteger(min: number, max: number) {
  return z.string({ error: "must appear once" })
    .check(({ value, issues }) => {
      const fault = findIntegerFault(value, min, max);
      if (fault !== null) issues.push({ code: "custom", input: value, message: fault });
    })
    .transform(Number)
    .register(z.globalRegistry, { type: "integer", minimum: min, maximum: max });
}

/** Schema as parseInteger(), with a default and a description. */
export function parseIntegerOr(
  fallback: number,
  [min, max]: [min: number, max: number],
  description?: string,
) {
  return parseInteger(min, max).default(fallback).meta({
    ...{ type: "integer", minimum: min, maximum: max, default: fallback },
    ...(description === undefined ? {} : { description }),
  });
}

function findIntegerFault(text: string, min: number, max: number): string | null {
  if (!/^-?\d{1,16}$/.test(text)) return "must be an integer";
  const value = Number(text);
  if (value < min) return `must be at least ${min}`;
  return value > max ? `must be at most ${max}` : null;
}

/** Shortest ending of an id that can name it, when the ending is unique (contract 8.11). */
const ENDING_MIN_CHARACTERS = 6;

/** A reference to an object: its id, its name, or the ending of its id (contract 8.11). */
export const refFilter = line(NAME_MAX_BYTES).meta({
  description:
    `an id, its ending of at least ${ENDING_MIN_CHARACTERS} characters, or a name where the object has one`,
});

/** Rows that the filter `text` of a long list searches. A list that reads further back for a rare word would keep the database busy. */
export const TEXT_FILTER_MAX_ROWS = 20_000;

export const textFilter = line(NAME_MAX_BYTES).meta({
  description: "only rows that contain this text; case matters only beyond ASCII",
});

export const queryTime = parseInteger(0, 8_640_000_000_000_000);

/** A boolean in a query. */
export const flag = z.enum(["true", "false"], { error: "must be true or false" })
  .transform((value) => value === "true")
  .meta({ type: "boolean" });

/** Schema as `flag`, with a default and a description. */
export function parseFlagOr(fallback: boolean, description?: string) {
  return flag.default(fallback).meta({
    ...{ type: "boolean", default: fallback },
    ...(description === undefined ? {} : { description }),
  });
}

/** Returns whether the runtime knows this time zone. */
export function isTimeZone(name: string): boolean {
  return checkZone(name).isKnown;
}

const ZONES_KEPT = 1_000;

const checkZone = memoize(ZONES_KEPT, (name) => {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return { isKnown: true };
  } catch {
    return { isKnown: false };
  }
});

/** Marks a list object whose texts were cut to limit the page size (contract 8.18). */
export const truncated = z.literal(true).optional()
  .meta({ description: "texts are cut to limit the size of the page; get returns them whole" });

/** Returns the fields without their defaults: for updates, where an absent field stays unchanged, and for responses. */
export function removeDefaults<S extends z.ZodRawShape>(shape: S): WithoutDefaults<S> {
  const entries = Object.entries(shape).map(([name, field]) =>
    [name, field instanceof z.ZodDefault ? field.unwrap() : field] as const
  );
  return Object.fromEntries(entries) as WithoutDefaults<S>;
}

/** Schema of fields that a request may repeat from a response and that the service ignores (contract 1.2). */
export function ignoreFields<const Names extends readonly string[]>(...names: Names) {
  return Object.fromEntries(names.map((name) => [name, z.unknown()])) as Record<Names[number], z.ZodUnknown>;
}

type WithoutDefaults<S extends z.ZodRawShape> = {
  [Name in keyof S]: S[Name] extends z.ZodDefault<infer Field> ? Field : S[Name];
};
