import { parseDurationMs } from "../../src/base/duration.ts";
import { usageError } from "../terminal/exit.ts";
import { option } from "./command.ts";

/** The flag of every command that waits. */
export const TIMEOUT = option.text(
  "--timeout <duration>",
  "stop waiting after this long, e.g. 30s (exit code 124)",
);

/** Returns the milliseconds of `--timeout`, or `fallback`. Throws a usage error. */
export function parseTimeout(timeout: string | undefined, fallback: number): number {
  return parseDuration(timeout, "--timeout", fallback);
}

/** Returns the milliseconds of a duration flag, or `fallback`. Throws a usage error. */
export function parseDuration(value: unknown, flag: string, fallback: number): number {
  if (value === undefined) return fallback;
  const ms = parseDurationMs(String(value));
  if (ms === null) {
    throw usageError(`${flag}: ${JSON.stringify(value)} is not a duration such as 30s, 5m or 500ms`);
  }
  return ms;
}
