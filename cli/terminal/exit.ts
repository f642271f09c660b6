import { type ErrorCode, ServiceError } from "../../src/domain/call/error.ts";

interface ExitSpec {
  code: number;
  meaning: string;
  /** The error code with --json, where no server sent one. */
  error?: string;
}

/** Every exit code of `svc ctl`, with its meaning for help and documents (contract 6). */
export const EXITS = {
  done: { code: 0, meaning: "success" },
  unexpected: { code: 1, meaning: "unexpected error", error: "internal" },
  usage: { code: 2, meaning: "invalid usage or input", error: "invalid_request" },
  notFound: { code: 3, meaning: "not found", error: "not_found" },
  notAllowed: { code: 4, meaning: "not logged in or not allowed", error: "unauthenticated" },
  conflict: { code: 5, meaning: "conflict with the current state", error: "conflict" },
  tryAgain: {
    code: 6,
    meaning: "service unreachable, stopping or overloaded; try again",
    error: "storage_full",
  },
  declined: { code: 7, meaning: "you declined a confirmation", error: "declined" },
  awaitedFailed: { code: 8, meaning: "the awaited work failed or was cancelled", error: "task_failed" },
  timedOut: { code: 124, meaning: "timeout of a wait", error: "timed_out" },
  interrupted: { code: 130, meaning: "interrupted by Ctrl-C" },
} satisfies Record<string, ExitSpec>;

export const EXIT = Object.fromEntries(
  Object.entries(EXITS).map(([name, { code }]) => [name, code]),
) as Record<keyof typeof EXITS, number>;

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
  budget: EXIT.conflict,
  upgrade_required: EXIT.usage,
  bad_gateway: EXIT.tryAgain,
  unavailable: EXIT.tryAgain,
  storage_full: EXIT.tryAgain,
  internal: EXIT.unexpected,
};

/** Ends a command with an exit code. A message, if any, goes to stderr. */
export class Exit extends Error {
  readonly code: number;

  constructor(code: number, words = "") {
    super(words);
    this.name = "Exit";
    this.code = code;
  }
}

/** Creates an error for invalid usage: exit code 2. */
export function usageError(words: string): Exit {
  return new Exit(EXIT.usage, words);
}

/** Formats an error without the runtime's error number. */
export function formatReason(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/ \(os error.*/s, "");
}

/** Explains why a file cannot be read. */
export function explainUnreadable(error: unknown): string {
  return error instanceof Deno.errors.NotFound ? "no such file" : "permission denied";
}

export function getExitCode(error: unknown): number {
  if (error instanceof Exit) return error.code;
  if (error instanceof ServiceError) return EXIT_BY_ERROR_CODE[error.code];
  return EXIT.unexpected;
}
