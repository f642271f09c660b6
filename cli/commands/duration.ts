import { durationMs } from "../../src/base/duration.ts";
import { usageError } from "../terminal/exit.ts";

/** The flag of every command that waits. */
export const TIMEOUT = {
  flags: "--timeout <duration>",
  about: "give up waiting after so long, such as 30s or 5m; exit code 124",
  type: "text",
} as const;

/** Ms that `--timeout` allows, or `fallback` without one. Throws a usage error. */
export function parseTimeout(timeout: string | undefined, fallback: number): number {
  return parseDuration(timeout, "--timeout", fallback);
}

/** Ms that a flag gives as a duration, or `fallback` without it. Throws a usage error. */
export function parseDuration(value: unknown, flag: string, fallback: number): number {
  if (value === undefined) return fallback;
  const ms = durationMs(String(value));
  if (ms === null) {
    throw usageError(`${flag}: ${JSON.stringify(value)} is not a duration such as 30s, 5m or 500ms`);
  }
  return ms;
}
