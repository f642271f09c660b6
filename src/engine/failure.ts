import type { EngineConfig } from "../config/schema.ts";
import type { Fault, FaultKind } from "./adapter.ts";
import type { ProcessEnd } from "./process.ts";
import { parseReset } from "./reset.ts";
import type { Failure } from "../domain/vocabulary.ts";

const LIMIT =
  /\b429\b|rate.?limit|too many requests|\bquota\b|usage limit|resource_exhausted|hit your .{0,20}limit/i;
const AUTH =
  /\b40[13]\b|unauthori[sz]ed|unauthenticated|authenticat|\bauth\b|api.?key|not logged in|log ?in\b|credential|permission_denied/i;

/** What words of an engine or a provider complain of; `otherwise` when they tell nothing that we know. */
export function faultKind(words: string, otherwise: FaultKind): FaultKind {
  if (LIMIT.test(words)) return "rate_limited";
  return AUTH.test(words) ? "auth" : otherwise;
}

/** The fault that these words tell of, with the time at which a limit ends where they name it. */
export function faultFrom(words: string, otherwise: FaultKind): Fault {
  return faultOfKind(faultKind(words, otherwise), words);
}

/** The fault of an HTTP status, where an engine reports it; else what the words say. */
export function faultFromStatus(status: number, words: string): Fault {
  if (status === 401 || status === 403) return faultOfKind("auth", words);
  if (status === 429) return faultOfKind("rate_limited", words);
  return status > 0 ? faultOfKind("model", words) : faultFrom(words, "model");
}

/** A fault of this kind; of a rate limit with its end as far as the words name one. */
export function faultOfKind(kind: FaultKind, words: string): Fault {
  return { kind, words: brief(words), reset: kind === "rate_limited" ? parseReset(words) : null };
}

const WORDS_MAX_CHARACTERS = 600;

function brief(words: string): string {
  const line = words.trim().replace(/\s*\n\s*/g, " | ");
  return line.length <= WORDS_MAX_CHARACTERS ? line : `${line.slice(0, WORDS_MAX_CHARACTERS)} …`;
}

/** The last lines of stderr, in one line. */
export function lastWords(stderr: string): string {
  const lines = stderr.trim().split("\n").filter((line) => line.trim() !== "");
  return lines.slice(-3).join(" | ") || "it ended without a word";
}

/** Which failure it is, and in which words, when a run was ended by its limits or by somebody. */
export function endedByUs(reason: ProcessEnd["reason"], config: EngineConfig): [Failure, string] {
  if (reason === "timeout") {
    return ["timeout", `ran longer than ${config.timeout / 1000} s (engines.<name>.timeout)`];
  }
  if (reason === "idle_timeout") {
    return ["idle_timeout", `said nothing for ${config.idle_timeout / 1000} s (engines.<name>.idle_timeout)`];
  }
  return ["cancelled", "the run was ended"];
}
