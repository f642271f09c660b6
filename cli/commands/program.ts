import { usageError } from "../terminal/exit.ts";
import { parseDuration } from "./duration.ts";

/** A program of a request, such as a gate or a check. */
interface ProgramFields {
  command: string[];
  timeout_ms?: number;
}

/**
 * Parses the command in a flag: a line for the shell, or a JSON list of words without a shell. "" returns null, which
 * removes the command. Throws a usage error naming the flag.
 */
export function parseCommand(
  line: string | undefined,
  timeout: string | undefined,
  flag: string,
): ProgramFields | null | undefined {
  if (line === undefined || line === "") {
    if (timeout !== undefined) throw usageError(`${flag}-timeout requires ${flag}`);
    return line === undefined ? undefined : null;
  }
  const limit = timeout === undefined ? {} : { timeout_ms: parseDuration(timeout, `${flag}-timeout`, 0) };
  return { command: line.startsWith("[") ? parseWords(line, flag) : ["sh", "-c", line], ...limit };
}

function parseWords(text: string, flag: string): string[] {
  try {
    const words: unknown = JSON.parse(text);
    if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
  } catch {
    // The error below covers invalid JSON, too.
  }
  throw usageError(`${flag}: ${text} is not a JSON list of words, such as ["make", "test"]`);
}
