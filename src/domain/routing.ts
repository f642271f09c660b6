import { nameKey } from "./name.ts";

/** What routing has to know of a worker. */
export interface Candidate {
  id: string;
  name: string;
  description: string;
  paused: boolean;
  departments: string[];
}

/** Where a message goes, and why (shown by `message trace`). */
export type Route =
  | { to: "worker"; workerId: string; instruction: string; reason: string }
  | { to: "bee" }
  | { to: "reply"; text: string; reason: string };

/**
 * The rules that come before any coordinator (contract 4, point 3): `@name` of exactly one worker, else the
 * session's own default worker. A leading mention is taken off the instruction.
 */
export function routeByRules(
  text: string,
  candidates: readonly Candidate[],
  defaultWorkerId: string | null,
): Route {
  const mention = findMention(text, candidates);
  if (mention !== null) {
    return {
      to: "worker",
      workerId: mention.worker.id,
      instruction: mention.rest === "" ? text : mention.rest,
      reason: `mentions @${mention.worker.name}`,
    };
  }
  const own = candidates.find((worker) => worker.id === defaultWorkerId);
  if (own === undefined) return { to: "bee" };
  return {
    to: "worker",
    workerId: own.id,
    instruction: text,
    reason: `${own.name} is the worker of this session`,
  };
}

/**
 * The built-in coordinator without a model (contract 4, point 4): best word overlap with name, description and
 * departments, then the only worker, else a reply that lists the workers. Paused workers are not chosen.
 */
export function routeWithoutModel(text: string, candidates: readonly Candidate[]): Route {
  const awake = candidates.filter((worker) => !worker.paused);
  const asked = words(text);
  const scored = awake
    .map((worker) => ({ worker, shared: sharedWords(asked, worker) }))
    .filter(({ shared }) => shared.length > 0)
    .sort((a, b) => b.shared.length - a.shared.length);
  const [best, second] = scored;
  if (best !== undefined && best.shared.length > (second?.shared.length ?? 0)) {
    const reason = `best match: ${best.shared.sort().join(", ")}`;
    return { to: "worker", workerId: best.worker.id, instruction: text, reason };
  }
  const [only] = awake;
  if (only !== undefined && awake.length === 1) {
    return { to: "worker", workerId: only.id, instruction: text, reason: `${only.name} is the only worker` };
  }
  return { to: "reply", text: listWorkers(candidates), reason: "no worker fits better than the others" };
}

interface Mention {
  worker: Candidate;
  /** The text without the mention when it stood at the start, else the text. */
  rest: string;
}

function findMention(given: string, candidates: readonly Candidate[]): Mention | null {
  const text = given.normalize("NFC");
  const mentioned = new Set<Candidate>();
  let rest = given;
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    // In the middle of a word it is an address such as ada@example.org.
    if (at > 0 && isWordCharacter(text.slice(0, at), -1)) continue;
    const found = longestName(text.slice(at + 1), candidates);
    if (found.length === 0) continue;
    for (const worker of found) mentioned.add(worker);
    const length = found[0]?.name.normalize("NFC").length ?? 0;
    if (text.slice(0, at).trim() === "") {
      rest = behind(given, text.slice(0, at + 1 + length)).replace(/^[\s:,.!-]+/, "");
    }
  }
  const [worker] = mentioned;
  return worker !== undefined && mentioned.size === 1 ? { worker, rest: rest.trim() } : null;
}

// Only names are compared in one form: an instruction may name a file, whose name is what its bytes are.
function behind(given: string, composed: string): string {
  // No character is taken apart into more than four.
  for (let end = composed.length; end <= Math.min(given.length, composed.length * 4); end++) {
    if (given.slice(0, end).normalize("NFC") === composed) return given.slice(end);
  }
  return given;
}

/** All workers whose name stands at the start of `text`, when no longer name does. */
function longestName(text: string, candidates: readonly Candidate[]): Candidate[] {
  let found: Candidate[] = [];
  let longest = 0;
  for (const worker of candidates) {
    const { length } = worker.name.normalize("NFC");
    if (length < longest || nameKey(text.slice(0, length)) !== nameKey(worker.name)) continue;
    // @ada-bot and @ada.example are other names than @ada, at the end of a sentence it is @ada.
    if (isWordCharacter(text, length) || /^[-.][\p{L}\p{N}_]/u.test(text.slice(length, length + 3))) continue;
    if (length > longest) found = [];
    longest = length;
    found.push(worker);
  }
  return found;
}

function isWordCharacter(text: string, at: number): boolean {
  return /[\p{L}\p{M}\p{N}_]/u.test(text.at(at) ?? "");
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
const COMMON = new Set(
  ("the and for with that this you your our are was can could please from have has will would not but all any " +
    "make about what when how who into out der die das und für mit ein eine bitte").split(" "),
);

/** The words of a text that say something, in lower case and without a plural s. */
function words(text: string): Set<string> {
  const found = new Set<string>();
  for (const { segment, isWordLike } of segmenter.segment(nameKey(text).slice(0, 20_000))) {
    if (!isWordLike || COMMON.has(segment)) continue;
    // Two Latin letters say little; two Chinese characters are a word.
    if (/^\p{ASCII}{1,2}$/u.test(segment)) continue;
    found.add(segment.replace(/(?<=\w{3})s$/, ""));
  }
  return found;
}

function sharedWords(asked: Set<string>, worker: Candidate): string[] {
  const own = words([worker.name, worker.description, ...worker.departments].join(" "));
  return [...own].filter((word) => asked.has(word));
}

const LISTED_WORKERS_MAX = 20;

function listWorkers(candidates: readonly Candidate[]): string {
  if (candidates.length === 0) {
    return "There is no worker yet who could do this. Make one with: svc ctl worker create --name <name>";
  }
  const lines = candidates.slice(0, LISTED_WORKERS_MAX).map(({ name, description, paused }) => {
    const [about] = description.split("\n");
    return `- @${name}${paused ? " (paused)" : ""}${about ? `: ${about.slice(0, 120)}` : ""}`;
  });
  const more = candidates.length - lines.length;
  return [
    "I do not know who should do this. Say it again with the name of a worker in front:",
    ...lines,
    ...(more > 0 ? [`and ${more} more`] : []),
  ].join("\n");
}
