import { memoize } from "../../base/memoize.ts";
import { findClosest } from "../call/closest.ts";
import { normalizeName } from "../call/name_key.ts";
import { hideCodeAndQuotes } from "./addressed_text.ts";

/** A mention that names no worker, and the names that it may mean. */
interface UnknownMention {
  word: string;
  close: string[];
}

// More mentions than this are no typing error, and comparing them with every name would take long.
const MENTIONS_MAX = 5;
// A person who misspells a name does so near the start, and composing a long hostile text would take seconds.
const READ_MAX_CHARACTERS = 2_000;
// A word after a blank, the start of the text or an opening bracket, so not the host of an address.
const MENTION = /(?<=^|[\s([{"'])@([\p{L}\p{N}_][\p{L}\p{M}\p{N}_.-]*)/gu;

/**
 * Finds a mention that names no worker but resembles one, or null. Names with blanks are compared with as many words of the text.
 */
export function findMisspelledMention(given: string, names: readonly string[]): UnknownMention | null {
  for (const mention of listMentions(given)) {
    const found = compare(mention, names);
    if (found !== null && found.close.length > 0) return found;
  }
  return null;
}

/** Finds a mention at the start of a text that names no worker, or null. */
export function findUnknownAddressee(given: string, names: readonly string[]): UnknownMention | null {
  const [first] = listMentions(given);
  return first === undefined || first.at !== given.slice(0, READ_MAX_CHARACTERS).search(/\S/)
    ? null
    : compare(first, names);
}

interface Mention {
  at: number;
  word: string;
  /** The text from the word on. */
  rest: string;
}

function listMentions(given: string): Mention[] {
  if (!given.includes("@")) return [];
  const text = hideCodeAndQuotes(given.slice(0, READ_MAX_CHARACTERS)).normalize("NFC");
  const found: Mention[] = [];
  for (const { index, 1: word = "" } of text.matchAll(MENTION)) {
    found.push({ at: index, word: word.replace(/[.-]+$/, ""), rest: text.slice(index + 1, index + 201) });
    if (found.length === MENTIONS_MAX) break;
  }
  return found;
}

// The names of workers repeat with each message.
const NAMES_KEPT = 1_000;
const readName = memoize(NAMES_KEPT, (name) => ({
  key: normalizeName(name),
  length: name.split(/\s+/).length,
}));

function compare({ word, rest }: Mention, names: readonly string[]): UnknownMention | null {
  const words = rest.split(/\s+/);
  const close: string[] = [];
  const key = normalizeName(word);
  for (const name of names) {
    const { key: known, length } = readName(name);
    const typed = length === 1 ? word : words.slice(0, length).join(" ").replace(/[.,:;!?-]+$/, "");
    if ((length === 1 ? key : normalizeName(typed)) === known) return null;
    if (findClosest(typed, [name]).length > 0) close.push(name);
  }
  return { word, close: findClosest(word, close).length > 0 ? findClosest(word, close) : close.slice(0, 3) };
}
