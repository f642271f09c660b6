import type { Schemas } from "../../live/api.ts";

type Failure = Exclude<Schemas["Execution"]["failure"], "">;

// Each text continues a sentence that starts with "The run".
const FAILURES: Record<Failure, string> = {
  exit_code: "ended with an error",
  engine_error: "ended with an engine error",
  timeout: "timed out",
  idle_timeout: "timed out without output",
  cancelled: "was cancelled",
  spawn_failed: "could not start",
  isolation: "had no box",
  server_lost: "was lost when the service stopped",
  rate_limited: "was stopped by the provider's rate limit",
  budget: "was stopped by a budget",
  verify_failed: "did not pass its check",
};

export function formatFailure(failure: string): string {
  return (FAILURES as Record<string, string>)[failure] ?? failure.replaceAll("_", " ");
}
