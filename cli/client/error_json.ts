import { ServiceError } from "../../src/domain/call/error.ts";
import { Exit, EXITS } from "../terminal/exit.ts";
import { Problem } from "./transport.ts";

/** The error codes that `svc ctl` creates itself, and their meanings (contract 8.13). */
export const OWN_CODES = {
  invalid_request: "invalid usage, an invalid configuration, or an unreadable local file",
  unauthenticated: "no key or token for the service",
  unavailable: "the service cannot be found or reached, or the connection was lost",
  not_found: "no thing has this name",
  conflict: "the current state does not allow it",
  storage_full: "the local disk is full",
  declined: "you declined a confirmation",
  task_failed: "the awaited work failed or was cancelled",
  timed_out: "timeout of a wait",
  internal: "unexpected error",
} as const;

/**
 * Formats an error as one JSON object for --json: the problem document of the server, or one of the same form without
 * `status` and `request_id` (contract 8.13).
 */
export function formatErrorJson(error: unknown, words: string): string {
  if (error instanceof Problem) return error.json;
  const code = findCode(error);
  const title = code.replaceAll("_", " ");
  return JSON.stringify({
    type: `about:blank#${code}`,
    title: title.charAt(0).toUpperCase() + title.slice(1),
    detail: words,
    code,
  });
}

function findCode(error: unknown): string {
  if (error instanceof ServiceError) return error.code;
  if (error instanceof Error && error.name === "ConfigError") return "invalid_request";
  if (!(error instanceof Exit)) return "internal";
  const found = Object.values(EXITS).find(({ code }) => code === error.code);
  return found !== undefined && "error" in found ? found.error : "internal";
}
