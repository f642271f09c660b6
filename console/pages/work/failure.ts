import type { Schemas } from "../../live/api.ts";
import { takeFirstLine } from "../../parts/format.ts";
import { stripCodes } from "../../parts/plain_text.ts";
import { findErrorLine } from "./log_errors.ts";

type Execution = Schemas["Execution"];
type Failure = Exclude<Execution["failure"], "">;

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
  setup: "could not start because of the worker's settings",
};

/** The kinds of failures as options of a choice. */
export const FAILURE_OPTIONS: readonly [Failure, string][] = (Object.keys(FAILURES) as Failure[]).map(
  (kind) => [kind, `${(FAILURES[kind][0] ?? "").toUpperCase()}${FAILURES[kind].slice(1)}`],
);

export function formatFailure(failure: string): string {
  return (FAILURES as Record<string, string>)[failure] ?? failure.replaceAll("_", " ");
}

/** A run that a person cancelled has its own status in the console. */
export function getShownStatus({ status, failure }: Pick<Execution, "status" | "failure">): string {
  return failure === "cancelled" ? "cancelled" : status;
}

/** Returns the line of a failed run's error that names the cause, else the first one. "" without an error. */
export function formatErrorLine(
  { status, failure, error }: Pick<Execution, "status" | "failure" | "error">,
): string {
  if (status !== "failed" || failure === "cancelled") return "";
  const lines = stripCodes(error).split("\n");
  const at = findErrorLine(lines);
  return takeFirstLine(at === undefined ? lines.join("\n") : lines[at] ?? "") || formatFailure(failure);
}
