import type { Endings, EngineFailure, EngineFailureKind } from "./adapter.ts";
import { parseReset } from "./reset.ts";

const LIMIT =
  /\b429\b|rate.?limit|too many requests|\bquota\b|usage limit|resource_exhausted|hit your .{0,20}limit/i;
const AUTH =
  /\b40[13]\b|unauthori[sz]ed|unauthenticated|authenticat|\bauth\b|api.?key|not logged in|log ?in\b|credential|permission_denied/i;

/** Classifies a failure by its message. A rate limit gets the time of its end, if the message names it. */
export function classifyFailure(words: string, otherwise: EngineFailureKind): EngineFailure {
  if (LIMIT.test(words)) return buildFailure("rate_limited", words);
  return buildFailure(AUTH.test(words) ? "auth" : otherwise, words);
}

const SESSION = "(?:session|conversation|thread|rollout|chat)s?";
const UNKNOWN_SESSION = new RegExp(
  [
    String.raw`\b${SESSION}\b.{0,160}?\b(?:not found|unknown|does(?: not|n['’]?t) exist|no longer exists)`,
    String.raw`\b(?:no|no such|unknown|missing) (?:[a-z]+ )?${SESSION}\b`,
    String
      .raw`\b(?:could not|couldn['’]?t|cannot|can['’]?t|failed to|unable to) (?:find|locate|resume)\b.{0,60}?\b${SESSION}\b`,
  ].join("|"),
  "i",
);
// The word "session" also names sessions of tools and logins.
const OTHER_SESSION = /\bmcp\b|\btmux\b|\bd-?bus\b|\blog ?in\b|\btoken\b/i;

// A message for people fits. A pattern such as /session.*not found/ takes seconds for a line of 100 kB that repeats "session".
const LINE_START_CHARACTERS = 1_000;

/**
 * Returns whether a line reports that the session to resume is unknown. The adapter has its engine's phrases; most engines use similar
 * ones.
 */
export function isSessionUnknown({ unknown_session }: Endings, line: string): boolean {
  const words = line.slice(0, LINE_START_CHARACTERS);
  return unknown_session?.test(words) === true || UNKNOWN_SESSION.test(words) && !OTHER_SESSION.test(words);
}

/** Classifies the end of a process without a final event. Only a process that resumed a session can report that it is unknown. */
export function classifyEnd(endings: Endings, stderr: string, resume: boolean): EngineFailure {
  const words = formatLastLines(stderr);
  const lines = stderr.split("\n");
  if (resume && lines.some((line) => isSessionUnknown(endings, line))) {
    return buildFailure("unknown_session", words);
  }
  const kind = (["session_exists", "setup"] as const).find((kind) => endings[kind]?.test(stderr));
  return kind === undefined ? classifyFailure(words, "crashed") : buildFailure(kind, words);
}

/** Classifies a failure by its HTTP status, or by its message when the status is 0. */
export function classifyStatus(status: number, words: string): EngineFailure {
  if (status === 401 || status === 403) return buildFailure("auth", words);
  if (status === 429) return buildFailure("rate_limited", words);
  return status > 0 ? buildFailure("model", words) : classifyFailure(words, "model");
}

/** Builds a failure of this kind. A rate limit gets the time of its end, if the message names it. */
export function buildFailure(kind: EngineFailureKind, words: string): EngineFailure {
  return { kind, words: shortenWords(words), reset: kind === "rate_limited" ? parseReset(words) : null };
}

const WORDS_MAX_CHARACTERS = 600;

function shortenWords(words: string): string {
  // A pattern such as /\s*\n\s*/ takes minutes for a long run of spaces.
  const line = words.split("\n").map((one) => one.trim()).filter((one) => one !== "").join(" | ");
  return line.length <= WORDS_MAX_CHARACTERS ? line : `${line.slice(0, WORDS_MAX_CHARACTERS)} …`;
}

export function formatLastLines(stderr: string): string {
  const lines = stderr.trim().split("\n").filter((line) => line.trim() !== "");
  return lines.slice(-3).join(" | ") || "it ended without a message";
}
