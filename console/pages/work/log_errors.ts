import { stripCodes } from "../../parts/plain_text.ts";

// Words of an error in the output of a program, but not those of a summary without errors.
const ERROR =
  /\b(error|errors|fail|failed|failure|fatal|exception|panic|panicked|traceback|denied|refused)\b|^! /i;
const NO_ERROR = /\b(0|no|without|zero) (errors?|fail(ed|ures?)?)\b/i;
const STAMP_CHARACTERS = /^\S+Z /;
const ERROR_SEARCH_MAX_LINES = 20_000;

/** Finds the line where the last error of a log starts, or undefined. The service's own lines are in brackets. */
export function findErrorLine(lines: readonly string[]): number | undefined {
  for (let at = lines.length - 1; at >= Math.max(0, lines.length - ERROR_SEARCH_MAX_LINES); at--) {
    if (!isError(lines[at])) continue;
    while (isError(lines[at - 1])) at--;
    return at;
  }
  return undefined;
}

function isError(line: string | undefined): boolean {
  if (line === undefined) return false;
  const text = stripCodes(line).replace(STAMP_CHARACTERS, "");
  return !text.startsWith("[") && ERROR.test(text) && !NO_ERROR.test(text);
}
