const WORDS: Record<string, string> = {
  exit_code: "ended with an error",
  engine_error: "its engine failed",
  timeout: "took too long",
  idle_timeout: "fell silent",
  cancelled: "cancelled",
  spawn_failed: "could not be started",
  server_lost: "lost when the service ended",
  rate_limited: "stopped by its provider's limit",
};

/** Why a run failed, in words (contract 3, Execution). */
export function failureWord(failure: string): string {
  return WORDS[failure] ?? failure.replaceAll("_", " ");
}
