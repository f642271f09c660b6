import { ServiceError } from "../../src/domain/error.ts";
import { Problem } from "./transport.ts";
import { EXIT, Exit } from "../terminal/exit.ts";

/** Codes of errors that ctl itself makes, beside those of the API, and when (contract 8.13). */
export const OWN_CODES = {
  invalid_request: "wrong usage, a wrong configuration, or a local file that cannot be read",
  unauthenticated: "there is no key or token to log in with",
  unavailable: "the service cannot be found or reached, or the connection was lost",
  not_found: "nothing has this name",
  conflict: "what is there does not allow it",
  storage_full: "the local disk is full",
  declined: "you answered no",
  task_failed: "what was waited for failed or was cancelled",
  timed_out: "the wait took too long",
  internal: "something unexpected went wrong",
} as const;

const ERROR_CODE_BY_EXIT: Record<number, keyof typeof OWN_CODES> = {
  [EXIT.usage]: "invalid_request",
  [EXIT.notFound]: "not_found",
  [EXIT.notAllowed]: "unauthenticated",
  [EXIT.conflict]: "conflict",
  [EXIT.tryAgain]: "storage_full",
  [EXIT.declined]: "declined",
  [EXIT.awaitedFailed]: "task_failed",
  [EXIT.timedOut]: "timed_out",
};

/**
 * With --json an error is one JSON object: the server's problem document as it came, or one of the same form without
 * `status` and `request_id`, since no server answered (contract 8.13).
 */
export function formatErrorJson(error: unknown, words: string): string {
  if (error instanceof Problem) return error.json;
  const code = error instanceof ServiceError
    ? error.code
    : error instanceof Exit
    ? ERROR_CODE_BY_EXIT[error.code] ?? "internal"
    : error instanceof Error && error.name === "ConfigError"
    ? "invalid_request"
    : "internal";
  const title = code.replaceAll("_", " ");
  return JSON.stringify({
    type: `about:blank#${code}`,
    title: title.charAt(0).toUpperCase() + title.slice(1),
    detail: words,
    code,
  });
}
