import { type ErrorCode, ServiceError } from "../../src/domain/error.ts";

/** Exit codes of `svc ctl` (contract 6). */
export const EXIT = {
  done: 0,
  unexpected: 1,
  usage: 2,
  notFound: 3,
  notAllowed: 4,
  conflict: 5,
  tryAgain: 6,
  declined: 7,
  awaitedFailed: 8,
  timedOut: 124,
  interrupted: 130,
} as const;

/** What each exit code means, for help and documents. */
export const EXIT_MEANINGS: Record<keyof typeof EXIT, string> = {
  done: "done",
  unexpected: "something unexpected went wrong",
  usage: "wrong usage, or the server refused the input",
  notFound: "no such thing",
  notAllowed: "not logged in, or not allowed",
  conflict: "its state does not allow it",
  tryAgain: "the server is unreachable, stopping or overloaded: try again",
  declined: "you answered no",
  awaitedFailed: "what was waited for failed or was cancelled",
  timedOut: "the wait took too long",
  interrupted: "interrupted with Ctrl-C",
};

const EXIT_BY_ERROR_CODE: Record<ErrorCode, number> = {
  invalid_request: EXIT.usage,
  payload_too_large: EXIT.usage,
  unsupported_media_type: EXIT.usage,
  method_not_allowed: EXIT.usage,
  not_found: EXIT.notFound,
  unauthenticated: EXIT.notAllowed,
  invalid_credentials: EXIT.notAllowed,
  forbidden: EXIT.notAllowed,
  conflict: EXIT.conflict,
  rate_limited: EXIT.tryAgain,
  unavailable: EXIT.tryAgain,
  storage_full: EXIT.tryAgain,
  internal: EXIT.unexpected,
};

/** Ends the command with this exit code, after its message, if any, was printed on stderr. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number, words = "") {
    super(words);
    this.name = "Exit";
    this.code = code;
  }
}

/** A usage error: exit code 2 (contract 6). */
export function usageError(words: string): Exit {
  return new Exit(EXIT.usage, words);
}

/** The exit code of whatever a command threw (contract 6). */
export function getExitCode(error: unknown): number {
  if (error instanceof Exit) return error.code;
  if (error instanceof ServiceError) return EXIT_BY_ERROR_CODE[error.code];
  return EXIT.unexpected;
}
