import { countBytes, cutToBytes } from "../../base/bytes.ts";
import { CONTENT_MAX_BYTES } from "../call/field.ts";

/** Another message that a message quotes or forwards. Agents get it as labelled data. */
export interface Excerpt {
  kind: "quoted" | "forwarded";
  author: string;
  text: string;
}

const AUTHOR_SHOWN_CHARACTERS = 100;
const LABELS = { quoted: "Quoted from", forwarded: "Forwarded from" };
// All line breaks of Unicode. A line that the quote marks miss would count as the person's own text.
const LINE_BREAK = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/;
// `.` stops at the line breaks after which `^` matches. So a failed attempt never reads beyond the start of the next one, and the search takes
// linear time.
const DATA = /^\[(?:Quoted from|Forwarded from) .*\]\n(?:> .*(?:\n|$))+|^\[Cannot read .*\](?:\n|$)/gm;

/** Formats an excerpt as a labelled quote, or as "" without text. */
export function formatExcerpt({ kind, author, text }: Excerpt): string {
  const body = cutToBytes(text.replaceAll("\0", ""), CONTENT_MAX_BYTES).trim();
  if (body === "") return "";
  // Removes brackets and mentions, so that a name that a person chose cannot end the label.
  const name = author.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}@[\]]+/gu, " ").trim().slice(
    0,
    AUTHOR_SHOWN_CHARACTERS,
  );
  const lines = body.split(LINE_BREAK).map((line) => `> ${line}`);
  return [`[${LABELS[kind]} ${name.toWellFormed() || "another person"}]`, ...lines].join("\n");
}

/** Formats a line for the agent with the names of the unreadable content. */
export function formatUnreadable(unreadable: readonly string[]): string {
  return unreadable.length === 0 ? "" : `[Cannot read ${joinNouns(unreadable)}]`;
}

/** Formats a notice to the person with the names of the unreadable content. */
export function formatUnreadableNotice(unreadable: readonly string[], isRestRead: boolean): string {
  const rest = isRestRead ? "The rest of the message was received." : "Send text or a file.";
  return `Cannot read ${joinNouns(unreadable)}. ${rest}`;
}

/** Returns the text that the person typed: the content without excerpts and without lines that the service added. */
export function findOwnText(content: string): string {
  return content.replace(DATA, "").trim();
}

const NOUNS_SHOWN = 5;

function joinNouns(given: readonly string[]): string {
  const nouns = [...new Set(given)].slice(0, NOUNS_SHOWN);
  const last = nouns.pop() ?? "";
  return nouns.length === 0 ? last : `${nouns.join(", ")} and ${last}`;
}

const CUT_NOTE = "\n[message truncated: it was too long]";

/** Cuts a text to the limit of a message, with a note at its end. */
export function cutContent(text: string): string {
  if (countBytes(text) <= CONTENT_MAX_BYTES) return text;
  return cutToBytes(text, CONTENT_MAX_BYTES - countBytes(CUT_NOTE)) + CUT_NOTE;
}
