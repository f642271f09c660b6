// Reads the directory of another program. Its content is untrusted: it may be huge, broken, or point elsewhere.
import { join, relative } from "node:path";
import { parseYaml } from "../../../src/config/yaml.ts";
import { formatReason, usageError } from "../../terminal/exit.ts";

/** A settings file of the other program. */
export const SETTINGS_MAX_BYTES = 4 * 1024 * 1024;
/** Names that a listing of one folder returns. */
const FOLDER_NAMES_MAX = 1_000;

/** Why a file of the directory is not read. */
export class FileFault extends Error {}

/** A directory whose files are read only if they are inside it, links followed. */
export class SourceDir {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /** Throws a usage error for something else than a directory. */
  static async open(path: string): Promise<SourceDir> {
    try {
      const real = await Deno.realPath(path);
      if (!(await Deno.stat(real)).isDirectory) throw new Error("it is not a directory");
      return new SourceDir(real);
    } catch (error) {
      throw usageError(`Cannot import ${path}: ${formatReason(error)}`);
    }
  }

  /** Returns the path below the directory, or null for a place that does not exist or is outside it. */
  async findInside(path: string): Promise<string | null> {
    const real = await Deno.realPath(join(this.path, path)).catch(() => null);
    if (real === null) return null;
    const inside = relative(this.path, real);
    return inside === ".." || inside.startsWith("../") ? null : inside;
  }

  /** Whether a path exists, also as a link to another place. */
  async has(path: string): Promise<boolean> {
    return await Deno.lstat(join(this.path, path)).catch(() => null) !== null;
  }

  /** Returns the full path of a regular file, or null if there is none. Throws FileFault. */
  async findFile(path: string, maxBytes: number): Promise<string | null> {
    const full = join(this.path, path);
    const found = await Deno.lstat(full).catch(() => null);
    if (found === null) return null;
    const inside = await this.findInside(path);
    if (inside === null) throw new FileFault("it is a link to a place outside the directory");
    const real = join(this.path, inside);
    const { isFile, size } = await Deno.stat(real);
    if (!isFile) throw new FileFault("it is not a file");
    if (size > maxBytes) throw new FileFault(`it is larger than ${maxBytes} bytes`);
    return real;
  }

  /** Reads a text file, or returns null if there is none. Throws FileFault. */
  async readText(path: string, maxBytes: number): Promise<string | null> {
    const real = await this.findFile(path, maxBytes);
    if (real === null) return null;
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(await Deno.readFile(real));
    } catch (error) {
      throw new FileFault(error instanceof TypeError ? "it is not UTF-8 text" : formatReason(error));
    }
  }

  /** Lists the names in a folder, sorted. A missing folder, or one outside the directory, has none. */
  async listNames(path: string): Promise<string[]> {
    const inside = await this.findInside(path);
    if (inside === null) return [];
    const names: string[] = [];
    try {
      for await (const { name } of Deno.readDir(join(this.path, inside))) {
        if (names.push(name) === FOLDER_NAMES_MAX) break;
      }
    } catch {
      return [];
    }
    return names.sort();
  }

  /**
   * Reads a settings file, or returns null if there is none. Throws a usage error that names the file, and the line or
   * the setting.
   */
  async readSettings(
    path: string,
    parse: (text: string) => unknown,
    types: SettingTypes = {},
  ): Promise<Settings | null> {
    try {
      const text = await this.readText(path, SETTINGS_MAX_BYTES);
      if (text === null) return null;
      const settings = parse(text);
      checkType(settings, "object", "it");
      for (const [setting, type] of Object.entries(types)) {
        for (const [place, value] of findPlaces(settings, setting.split("."))) checkType(value, type, place);
      }
      return settings as Settings;
    } catch (error) {
      throw usageError(`Cannot import ${join(this.path, path)}: ${formatReason(error)}`);
    }
  }
}

/** An unchecked object of a settings file. */
export type Settings = Record<string, unknown>;

const TYPES = {
  object: {
    words: "an object",
    fits: (value: unknown) => typeof value === "object" && !Array.isArray(value),
  },
  list: { words: "a list", fits: Array.isArray },
  text: { words: "a text", fits: (value: unknown) => typeof value === "string" || typeof value === "number" },
  boolean: { words: "true or false", fits: (value: unknown) => typeof value === "boolean" },
};

/** The types of settings by their place. `*` means each element of a list and each value of an object. */
export type SettingTypes = Record<string, keyof typeof TYPES>;

// A setting without a value is none.
function checkType(value: unknown, type: keyof typeof TYPES, place: string): void {
  const isNone = value === undefined || value === null && place !== "it";
  if (!isNone && (value === null || !TYPES[type].fits(value))) {
    throw new FileFault(`${place} must be ${TYPES[type].words}`);
  }
}

const NAME_SHOWN_MAX = 100;

// A name in the file may have any characters.
function formatName(name: string): string {
  return name.length <= NAME_SHOWN_MAX && /^[\w-]+$/.test(name)
    ? name
    : JSON.stringify(name.slice(0, NAME_SHOWN_MAX));
}

/** Finds the values at a place, with their own places. Other types than a list and an object have none below. */
function findPlaces(settings: unknown, [key = "", ...rest]: string[], above = ""): [string, unknown][] {
  // A file that a setting includes is not read.
  const found = Object.entries(Array.isArray(settings) ? settings : asSettings(settings))
    .filter(([name]) => key === "*" ? name !== "$include" : name === key)
    .map(([name, value]): [string, unknown] => [above + formatName(name), value]);
  return rest.length === 0 ? found : found.flatMap(([place, value]) => findPlaces(value, rest, `${place}.`));
}

/** Returns the value if it is an object, else an empty object. */
export function asSettings(value: unknown): Settings {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value as Settings : {};
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/** Returns the texts of a list. A number counts as text. */
export function asTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.map(asText).filter((one) => one !== "") : [];
}

// Every alternative also matches at the end of a broken text, so no part of it is read twice.
const JSON5_TOKEN =
  /"[^"\\]*(?:\\[\s\S][^"\\]*)*(?:"|$)|'([^'\\]*(?:\\[\s\S][^'\\]*)*)(?:'|$)|\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|[\d.+-][\w.+-]*|[A-Za-z_$][\w$]*/g;

/** Parses JSON, also with comments, commas at the end, single quotes and bare keys (JSON5). Its errors quote nothing. */
export function parseJson5(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // JSON5, or an error that has its line below.
  }
  const plain = text.replace(JSON5_TOKEN, (token, single?: string) => {
    if (single !== undefined) return quoteSingle(single);
    if (token.startsWith("/")) return token.replace(/[^\n]/g, " ");
    return /^[^A-Za-z_$]|^(true|false|null)$/.test(token) ? token : `"${token}"`;
  });
  return parseStrict(removeLastCommas(plain));
}

function quoteSingle(text: string): string {
  const plain = text.replace(
    /\\([\s\S])|"/g,
    (part, escaped?: string) => escaped === undefined ? '\\"' : escaped === "'" ? "'" : part,
  );
  return `"${plain}"`;
}

// Outside of texts, a comma before a closing bracket becomes a blank.
function removeLastCommas(text: string): string {
  return text.replace(
    /"[^"\\]*(?:\\[\s\S][^"\\]*)*(?:"|$)|,(?=\s*[}\]])/g,
    (part) => part === "," ? " " : part,
  );
}

/** Parses JSON. Its errors have the line, and quote nothing: the text has secrets. */
export function parseStrict(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const [, line, column] = /line (\d+) column (\d+)/.exec(String(error)) ?? [];
    throw new Error(line === undefined ? "it is not valid JSON" : `${line}:${column}: it is not valid JSON`);
  }
}

// Without this limit a few bytes of nested aliases become gigabytes.
const ALIASES_MAX = 100;

/** Parses YAML. Its errors have the line, and quote nothing. */
export function parseYamlSettings(text: string): unknown {
  try {
    return parseYaml(text).document.toJS({ maxAliasCount: ALIASES_MAX }) ?? {};
  } catch (error) {
    const [place = ""] = /^\d+:\d+: /.exec(error instanceof Error ? error.message : "") ?? [];
    throw new Error(`${place}it is not valid YAML, or has too many aliases`);
  }
}

const VARIABLES_MAX = 1_000;

/** Parses the first variables of a file of NAME=value lines. */
export function parseEnvFile(text: string): Record<string, string> {
  return Object.fromEntries(
    text.split(/\r?\n/, VARIABLES_MAX).flatMap((line) => {
      const [, name, value = ""] = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)$/.exec(line) ?? [];
      if (name === undefined) return [];
      const [, quoted] = /^\s*(?:"(.*)"|'(.*)')\s*$/.exec(value)?.filter((one) => one !== undefined) ?? [];
      return [[name, quoted ?? value.replace(/\s#.*$/, "").trim()]];
    }),
  );
}
