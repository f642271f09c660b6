import type { EngineOutcome } from "../engine/engine.ts";
import { maskText } from "../engine/process/masked_text.ts";
import { stripEscapes } from "../engine/protocol/transcript.ts";

const KEY_NAME = /KEY|TOKEN|SECRET|PASSWORD/i;
// A shorter value is not treated as a secret: it would be masked inside ordinary words.
const SECRET_MIN_CHARACTERS = 12;
// Far deeper than any configuration.
const KEY_MAX_DEPTH = 50;

/** Finds the values of variables that are keys by name, also inside of JSON objects (reliability SEC-2). */
export function findSecrets(env: Record<string, string>): string[] {
  const keys = Object.entries(env).flatMap(([name, value]) => findKeys(name, value));
  return [...new Set(keys)].filter((key) => key.length >= SECRET_MIN_CHARACTERS);
}

/** Whether a variable is a key by its name, or a JSON object with one in it. */
export function holdsKey(name: string, value: string): boolean {
  return findKeys(name, value).length > 0;
}

/**
 * Masks secrets in an outcome, which is stored and shown like a log (reliability SEC-3). First removes a program's colors, which
 * only a terminal and the log can show.
 */
export function maskOutcome<O extends EngineOutcome>(secrets: readonly string[], outcome: O): O {
  const clean = (text: string) => maskText(secrets, stripEscapes(text));
  return { ...outcome, text: clean(outcome.text), error: clean(outcome.error) };
}

function findKeys(name: string, value: string): string[] {
  return [...(KEY_NAME.test(name) ? [value] : []), ...findKeysBelow(parseObject(value), false, 0)];
}

function parseObject(value: string): unknown {
  if (!value.trimStart().startsWith("{")) return null;
  try {
    return JSON.parse(value);
  } catch {
    return null;
  }
}

function findKeysBelow(value: unknown, isKey: boolean, depth: number): string[] {
  // A program may print the variable as JSON text.
  if (typeof value === "string") return isKey ? [value, JSON.stringify(value).slice(1, -1)] : [];
  if (typeof value !== "object" || value === null || depth === KEY_MAX_DEPTH) return [];
  return Object.entries(value).flatMap(([name, below]) =>
    findKeysBelow(below, isKey || KEY_NAME.test(name), depth + 1)
  );
}
