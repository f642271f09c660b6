import { usage } from "./exit.ts";

const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The flag of every command that waits. */
export const TIMEOUT = {
  flags: "--timeout <duration>",
  about: "give up waiting after so long, such as 30s or 5m; exit code 124",
  type: "text",
} as const;

/** Ms that `--timeout` allows, or `fallback` without one. Throws a usage error. */
export function timeoutMs(timeout: string | undefined, fallback: number): number {
  if (timeout === undefined) return fallback;
  const ms = durationMs(timeout);
  if (ms === null) {
    throw usage(`--timeout: ${JSON.stringify(timeout)} is not a duration such as 30s, 5m or 500ms`);
  }
  return ms;
}

/** Ms of a duration such as `500ms 30s 5m 2h 7d`, or null when it is none. */
function durationMs(text: string): number | null {
  const match = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  return match === null ? null : Number(match[1]) * (UNIT_MS[match[2] ?? ""] ?? 0);
}
