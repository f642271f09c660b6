import type { Execution } from "../../live/api.ts";

type Failure = Exclude<Execution["failure"], "">;

// Each goes on behind "It", and stands alone behind a name.
const WORDS: Record<Failure, string> = {
  exit_code: "ended with an error",
  engine_error: "ended with an error of its engine",
  timeout: "took too long",
  idle_timeout: "fell silent",
  cancelled: "was cancelled",
  spawn_failed: "could not be started",
  server_lost: "was lost when the service ended",
  rate_limited: "was stopped by its provider's limit",
  budget: "was ended by a budget",
  verify_failed: "did not pass its check",
};

/** Why a run failed, in words (contract 3, Execution). */
export function failureWord(failure: string): string {
  return (WORDS as Record<string, string>)[failure] ?? failure.replaceAll("_", " ");
}
