import { parseDuration } from "./duration.ts";
import { usageError } from "../terminal/exit.ts";

/** What a command is run with, as a request has it. */
interface ProgramFields {
  command: string[];
  timeout_ms?: number;
}

/**
 * The command in a flag: a line for the shell, or a JSON list of words that no shell reads. "" takes the command away: null.
 * Throws a usage error naming the flag.
 */
export function parseCommand(
  line: string | undefined,
  timeout: string | undefined,
  flag: string,
): ProgramFields | null | undefined {
  if (line === undefined || line === "") {
    if (timeout !== undefined) throw usageError(`${flag}-timeout goes with ${flag}`);
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
    // Told below.
  }
  throw usageError(`${flag}: ${text} is not a JSON list of words, such as ["make", "test"]`);
}
