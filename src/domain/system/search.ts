import { z } from "zod";
import { id, line, NAME_MAX_BYTES, parseList, queryTime, sessionKeyFilter, time } from "../call/field.ts";
import type { Scope } from "../call/vocabulary.ts";

/** Kinds of rows that the search finds. */
const SEARCH_KINDS = ["message", "result", "memory"] as const;
export type SearchKind = (typeof SEARCH_KINDS)[number];

/** Tables that the search index covers. */
export const SEARCH_SOURCES = ["inbound", "outbound", "execution", "memory"] as const;
export type SearchSource = (typeof SEARCH_SOURCES)[number];

/** Characters of a text that the index has. */
export const SEARCHED_MAX_CHARACTERS = 16_384;

/** Words of a query. */
const SEARCH_WORDS_MAX = 10;

/** Rows on a page. */
export const SEARCH_PAGE_ROWS = 50;

/** Rows whose text one request reads: those with words of one or two characters, which the index cannot find. */
export const SEARCH_READ_MAX_ROWS = 20_000;

/** The time of one search. */
export const SEARCH_MAX_MS = 2_000;

/** Characters of an excerpt. */
const EXCERPT_MAX_CHARACTERS = 240;

/** The values of `in`, each with its kind and the scope that it requires. */
export const SEARCHED: Readonly<Record<SearchIn, { kind: SearchKind; scope: Scope }>> = {
  messages: { kind: "message", scope: "read:messages" },
  results: { kind: "result", scope: "read:executions" },
  memory: { kind: "memory", scope: "read:memory" },
};

export const SEARCH_IN = ["messages", "results", "memory"] as const;
export type SearchIn = (typeof SEARCH_IN)[number];

const range = z.array(z.int()).length(2);

export const searchHitSchema = z.strictObject({
  id: z.string().meta({ description: "of the message or the run; the key of a memory entry" }),
  kind: z.enum(SEARCH_KINDS),
  at: time.meta({ description: "when the message was stored, the run was created or the entry was changed" }),
  session_key: z.string().meta({ description: "empty for global memory" }),
  worker_id: z.string().meta({ description: "of a result or a reply; else empty" }),
  excerpt: z.string().meta({
    description: `around the first word, at most ${EXCERPT_MAX_CHARACTERS} characters`,
  }),
  ranges: z.array(range).meta({
    description: "where the words are in the excerpt: from, and to (exclusive), in UTF-16 units",
  }),
}).meta({ id: "SearchHit" });
export type SearchHit = z.output<typeof searchHitSchema>;

const q = line(NAME_MAX_BYTES)
  .refine((text) => splitWords(text).length <= SEARCH_WORDS_MAX, {
    error: `must be at most ${SEARCH_WORDS_MAX} words`,
  })
  .meta({ description: "words, all of which a text contains; case does not matter" });

const cursor = id.optional().meta({ description: "continue after this id; taken from the header Link" });

const since = queryTime.optional().meta({ description: "at or after this time, Unix ms" });

export const recallQuery = { q, since, cursor };
export type RecallQuery = z.output<z.ZodObject<typeof recallQuery>>;

export const searchQuery = {
  ...recallQuery,
  in: parseList(z.enum(SEARCH_IN)).optional(),
  worker_id: id.optional(),
  session_key: sessionKeyFilter.optional(),
};
export type SearchQuery = z.output<z.ZodObject<typeof searchQuery>>;

/** Splits a query into its words, without repeats. */
export function splitWords(text: string): string[] {
  return [...new Set(text.split(/\s+/u).filter((word) => word !== ""))];
}

/** Whether the index, which has every three characters in a row, can find a word. */
export function isIndexed(word: string): boolean {
  return [...word].length >= 3;
}

/** Builds the patterns that find the words in a text, whatever their case. */
export function buildPatterns(words: readonly string[]): RegExp[] {
  return words.map((word) => new RegExp(word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu"));
}

interface Excerpt {
  excerpt: string;
  ranges: number[][];
}

/** Cuts the part of a text around its first word, with the places of all words. Returns null when a word is missing. */
export function cutExcerpt(text: string, patterns: readonly RegExp[]): Excerpt | null {
  const places = patterns.map((pattern) => findPlaces(text, pattern));
  if (places.some((found) => found.length === 0)) return null;
  const all = mergeRanges(places.flat());
  const first = all[0]?.[0] ?? 0;
  // A third of the excerpt precedes the first word.
  const start = text.length <= EXCERPT_MAX_CHARACTERS ? 0 : Math.max(
    0,
    Math.min(first - Math.floor(EXCERPT_MAX_CHARACTERS / 3), text.length - EXCERPT_MAX_CHARACTERS),
  );
  const from = isInsidePair(text, start) ? start + 1 : start;
  const end = Math.min(text.length, start + EXCERPT_MAX_CHARACTERS);
  const to = isInsidePair(text, end) ? end - 1 : end;
  const excerpt = text.slice(from, to).replace(/[\p{Cc}\u2028\u2029]/gu, " ");
  const ranges = all
    .map(([low, high]): [number, number] => [Math.max(low, from) - from, Math.min(high, to) - from])
    .filter(([low, high]) => low < high);
  return { excerpt, ranges };
}

const PLACES_KEPT = 200;

function findPlaces(text: string, pattern: RegExp): [number, number][] {
  const found: [number, number][] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    found.push([match.index, match.index + match[0].length]);
    if (found.length === PLACES_KEPT) break;
  }
  return found;
}

function mergeRanges(ranges: readonly [number, number][]): [number, number][] {
  const merged: [number, number][] = [];
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** Whether an index is between the two units of one character. */
function isInsidePair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]/.test(text.slice(Math.max(0, at - 1), at + 1)) && at > 0;
}
