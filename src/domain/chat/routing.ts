import { memoize } from "../../base/memoize.ts";
import { normalizeName } from "../call/name_key.ts";
import { formatSuggestion } from "../call/closest.ts";
import type { RoutingRule } from "../call/vocabulary.ts";
import { hideCodeAndQuotes } from "./addressed_text.ts";
import { findMisspelledMention, findUnknownAddressee } from "./mention_typo.ts";

/** The properties of a worker that routing reads. */
export interface Candidate {
  id: string;
  name: string;
  description: string;
  paused: boolean;
  departments: string[];
}

/** Where a message goes, and why. `message trace` shows the reason. */
export type Route =
  | { to: "worker"; workerId: string; instruction: string; reason: string }
  | { to: "bee" }
  | { to: "nobody"; text: string; reason: string };

/**
 * Routes by the rules that precede the bee (contract 4.3): `@name` of exactly one worker, else the session's default worker.
 * Removes a leading mention from the instruction. A message that names several workers, or misspells a name, goes to none.
 */
export function routeByRules(
  text: string,
  candidates: readonly Candidate[],
  defaultWorkerId: string | null,
): Route {
  const { workers: [worker, ...others], rest } = findMentions(text, candidates);
  if (worker !== undefined && others.length > 0) return hintAtOneWorker([worker, ...others]);
  if (worker !== undefined) return routeTo(worker, rest || text, `mentions @${worker.name}`);
  const typo = findMisspelledMention(text, candidates.map(({ name }) => name));
  if (typo !== null) return hintAtNames(typo.word, typo.close);
  const own = candidates.find((worker) => worker.id === defaultWorkerId);
  if (own === undefined) return { to: "bee" };
  return routeTo(own, text, `${own.name} is the worker of this conversation`);
}

function routeTo({ id }: Candidate, instruction: string, reason: string): Route {
  return { to: "worker", workerId: id, instruction, reason };
}

function hintAtNames(word: string, close: readonly string[]): Route {
  const meant = formatSuggestion(close.map((name) => `@${name}`));
  return { to: "nobody", text: `No worker named ${word}.${meant}`, reason: `no worker is named ${word}` };
}

function hintAtOneWorker(workers: readonly Candidate[]): Route {
  const hint =
    "This message names several workers. Write to one worker at a time, in a separate message to each:";
  return { to: "nobody", text: [hint, ...listWorkers(workers)].join("\n"), reason: "names several workers" };
}

/**
 * Routes without a model, for the built-in engine `rules` (contract 4.4): best word overlap with name, description and
 * departments, then the only worker, else a reply that lists the workers. Never chooses paused workers.
 */
export function routeWithoutModel(text: string, candidates: readonly Candidate[]): Route {
  const unknown = findUnknownAddressee(text, candidates.map(({ name }) => name));
  if (unknown !== null && candidates.length > 0) {
    const names = candidates.slice(0, LISTED_WORKERS_MAX).map(({ name }) => `@${name}`).join(", ");
    const more = candidates.length - LISTED_WORKERS_MAX;
    return {
      to: "nobody",
      text: `No worker named ${unknown.word}. The workers are ${names}${
        more > 0 ? ` and ${more} more` : ""
      }.`,
      reason: `no worker is named ${unknown.word}`,
    };
  }
  const active = candidates.filter((worker) => !worker.paused);
  const messageWords = findWords(text);
  const scored = active
    .map((worker) => ({ worker, shared: findSharedWords(messageWords, worker) }))
    .filter(({ shared }) => shared.length > 0)
    .sort((a, b) => b.shared.length - a.shared.length);
  const [best, second] = scored;
  if (best !== undefined && best.shared.length > (second?.shared.length ?? 0)) {
    return routeTo(best.worker, text, `best match: ${best.shared.sort().join(", ")}`);
  }
  const [only] = active;
  if (only !== undefined && active.length === 1) {
    return routeTo(only, text, `${only.name} is the only worker`);
  }
  return { to: "nobody", text: formatNoMatch(candidates), reason: "no worker fits better than the others" };
}

/** Where a message would go, why, and how well each worker fits (contract 16). */
interface RoutingExplanation {
  route: Route;
  rule: RoutingRule;
  workers: { worker: Candidate; shared: string[] }[];
}

/**
 * Applies the routing rules to a text without asking the coordinator's model. `withoutModel`: no model exists, so the rules
 * decide everything.
 */
export function explainRouting(
  text: string,
  candidates: readonly Candidate[],
  { defaultWorkerId, withoutModel }: { defaultWorkerId: string | null; withoutModel: boolean },
): RoutingExplanation {
  const messageWords = findWords(text);
  const workers = candidates
    .map((worker) => ({ worker, shared: findSharedWords(messageWords, worker).sort() }))
    .sort((a, b) => b.shared.length - a.shared.length);
  const ruled = routeByRules(text, candidates, defaultWorkerId);
  if (ruled.to === "nobody") return { route: ruled, rule: "nobody", workers };
  if (ruled.to === "worker") {
    return { route: ruled, rule: ruled.reason.startsWith("mentions") ? "mention" : "session", workers };
  }
  if (!withoutModel) return { route: ruled, rule: "coordinator", workers };
  const route = routeWithoutModel(text, candidates);
  const rule = route.to !== "worker" ? "nobody" : route.reason.startsWith("best match") ? "match" : "only";
  return { route, rule, workers };
}

/** Finds a worker by name or id. */
export function findByName(candidates: readonly Candidate[], name: string): Candidate | undefined {
  return candidates.find((worker) =>
    normalizeName(worker.name) === normalizeName(name) || worker.id === name.toLowerCase()
  );
}

/** Routes a program's message to the worker of its platform. The text contains no mentions and no commands (contract 10). */
export function routeData(text: string, candidates: readonly Candidate[], name: string): Route {
  const worker = findByName(candidates, name);
  if (worker !== undefined) return routeTo(worker, text, `${worker.name} is the worker of this platform`);
  return {
    to: "nobody",
    text: `Cannot route this message: the configuration of this platform names the worker ${
      JSON.stringify(name)
    }, which does not exist.`,
    reason: "the worker of this platform does not exist",
  };
}

interface Mentions {
  /** The named workers, in order. Empty if the text contains only one name and several workers share it. */
  workers: Candidate[];
  /** The text without a mention at its start, or the whole text if no mention is there. */
  rest: string;
}

/** Finds the workers that a text names outside of code and quotes. */
export function findMentions(given: string, candidates: readonly Candidate[]): Mentions {
  if (!given.includes("@")) return { workers: [], rest: given };
  const text = composeText(hideCodeAndQuotes(given));
  const folded = foldCase(text);
  const names = buildNameTree(candidates);
  const start = text.search(/\S/);
  const found = new Map<Candidate, readonly Candidate[]>();
  let rest = given;
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    // Skips most positions of a hostile text before the expensive checks.
    if (!names.next.has(folded.charCodeAt(at + 1))) continue;
    // An @ inside a word belongs to an address such as ada@example.org.
    if (at > 0 && isWordCharacter(text[at - 1] ?? "")) continue;
    const namesakes = findLongestName({ text, folded, at: at + 1 }, names);
    const [worker] = namesakes;
    if (worker === undefined) continue;
    found.set(worker, namesakes);
    if (at !== start) continue;
    const length = worker.name.normalize("NFC").length;
    rest = removeMention(given.slice(start), text.slice(start, start + 1 + length));
  }
  const [only] = found.values();
  return {
    workers: found.size === 1 && only !== undefined && only.length > 1 ? [] : [...found.keys()],
    rest: rest.trim(),
  };
}

/** Removes a mention at the start of a text. In `@Ada's turn` the mention is part of a sentence, so it stays. */
function removeMention(given: string, mention: string): string {
  const rest = removePrefix(given, mention);
  return APOSTROPHE.test(rest) ? given : rest.replace(/^[\s:,.!-]+/, "");
}

// Also matches the characters that keyboards type instead of an apostrophe, before a letter.
const APOSTROPHE = /^(?:['\u2019\u02bc\uff07]|[\u2018\u00b4\u02b9`]\p{L})/u;

// Longest run of non-ASCII characters that is composed in one step.
const COMPOSED_PIECE_CHARACTERS = 64;

/**
 * Converts a text to Unicode form C. The runtime sorts marks by insertion, so a run of 100,000 would take about ten seconds.
 * Long runs are composed piece by piece, and a piece starts after each `@`.
 */
function composeText(text: string): string {
  if (!hasLongRun(text)) return text.normalize("NFC");
  return text.replace(/[\0-\x7f]?[^\0-\x7f]+/g, (run) => {
    const pieces: string[] = [];
    for (let at = 0; at < run.length; at += COMPOSED_PIECE_CHARACTERS) {
      pieces.push(run.slice(at, at + COMPOSED_PIECE_CHARACTERS).normalize("NFC"));
    }
    return pieces.join("");
  });
}

function hasLongRun(text: string): boolean {
  let run = 0;
  for (let at = 0; at < text.length; at++) {
    run = text.charCodeAt(at) < 0x80 ? 0 : run + 1;
    if (run > COMPOSED_PIECE_CHARACTERS) return true;
  }
  return false;
}

// Lower case without a change of length: İ would grow, and a final sigma differs from other sigmas.
function foldCase(text: string): string {
  return text.replaceAll("\u0130", "i").toLowerCase().replaceAll("\u03c2", "\u03c3");
}

/** A node in the tree of names: the nodes of possible next characters, and the workers whose name ends here, by normalizeName(). */
interface NameNode {
  next: Map<number, NameNode>;
  ending: Map<string, Candidate[]>;
}

/** Builds a tree of all names, so that one pass compares a text with all of them. */
function buildNameTree(candidates: readonly Candidate[]): NameNode {
  const root: NameNode = { next: new Map(), ending: new Map() };
  for (const worker of candidates) {
    const folded = foldCase(worker.name.normalize("NFC"));
    let node = root;
    for (let at = 0; at < folded.length; at++) node = getChild(node, folded.charCodeAt(at));
    const key = normalizeName(worker.name);
    const namesakes = node.ending.get(key);
    if (namesakes === undefined) node.ending.set(key, [worker]);
    else namesakes.push(worker);
  }
  return root;
}

function getChild(node: NameNode, code: number): NameNode {
  const known = node.next.get(code);
  if (known !== undefined) return known;
  const made: NameNode = { next: new Map(), ending: new Map() };
  node.next.set(code, made);
  return made;
}

/** Returns all workers with the longest name that starts at this position. */
function findLongestName(
  position: { text: string; folded: string; at: number },
  names: NameNode,
): Candidate[] {
  const { text, folded, at } = position;
  let found: Candidate[] = [];
  let node: NameNode | undefined = names;
  for (let end = at; node !== undefined; end++) {
    // @ada-bot and @ada.example are other names than @ada. A full stop at the end is not part of the name.
    if (
      node.ending.size > 0 &&
      !/^(?!\u02bc|\u02b9)(?:[-.]?[\p{L}\p{N}_]|\p{M})/u.test(text.slice(end, end + 3))
    ) {
      const name = text.slice(at, end);
      found = node.ending.get(name) ?? node.ending.get(normalizeName(name)) ?? found;
    }
    node = node.next.get(folded.charCodeAt(end));
  }
  return found;
}

// Returns the original bytes after the mention: the instruction may name a file, and a file name is a sequence of bytes.
function removePrefix(given: string, composed: string): string {
  // A character decomposes into at most four.
  for (let end = composed.length; end <= Math.min(given.length, composed.length * 4); end++) {
    if (given.slice(0, end).normalize("NFC") === composed) return given.slice(end);
  }
  return given;
}

function isWordCharacter(character: string): boolean {
  if (character < "0" && character !== "") return false;
  return /[\p{L}\p{M}\p{N}_]/u.test(character);
}

const WORDS_MAX_CHARACTERS = 20_000;
let segmenter: Intl.Segmenter | undefined;
const COMMON = new Set(
  ("the and for with that this you your our are was can could please from have has will would not but all any " +
    "make about what when how who into out der die das und für mit ein eine bitte").split(" "),
);

/** Returns the meaningful words of a text, in lower case and without a plural s. */
function findWords(text: string): Set<string> {
  const found = new Set<string>();
  // Creating a segmenter takes 20 ms, so no start pays for it.
  segmenter ??= new Intl.Segmenter(undefined, { granularity: "word" });
  for (
    const { segment, isWordLike } of segmenter.segment(
      composeText(text.slice(0, WORDS_MAX_CHARACTERS)).toLowerCase(),
    )
  ) {
    if (!isWordLike || COMMON.has(segment)) continue;
    // A match of two Latin letters means little, but two Chinese characters are a word.
    if (/^\p{ASCII}{1,2}$/u.test(segment)) continue;
    found.add(segment.replace(/(?<=\w{3})s$/, ""));
  }
  return found;
}

function findSharedWords(messageWords: Set<string>, worker: Candidate): string[] {
  const own = findWorkerWords([worker.name, worker.description, ...worker.departments].join(" "));
  return [...own].filter((word) => messageWords.has(word));
}

// Every message reads the workers again, and they rarely change. Finding words takes about 5 ms per 20,000 characters.
const KNOWN_WORKERS_MAX = 500;
const findWorkerWords = memoize(KNOWN_WORKERS_MAX, findWords);

const LISTED_WORKERS_MAX = 8;

function formatNoMatch(candidates: readonly Candidate[]): string {
  if (candidates.length === 0) {
    return "There is no worker yet. Create one with: svc ctl worker create --name <name>";
  }
  const hint = "No worker fits best. Send the message again and start it with a worker's name:";
  return [hint, ...listWorkers(candidates)].join("\n");
}

function listWorkers(candidates: readonly Candidate[]): string[] {
  const lines = candidates.slice(0, LISTED_WORKERS_MAX).map(({ name, description, paused }) => {
    const [about] = description.split("\n");
    return `- @${name}${paused ? " (paused)" : ""}${about ? `: ${about.slice(0, 120)}` : ""}`;
  });
  const more = candidates.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])];
}
