import { type Dialect, MARKDOWN } from "../markdown.ts";

// Addresses stay as they are: a mark that is escaped there breaks them. A `*` before a blank is none: it begins a list, or multiplies.
const MARKS = /https?:\/\/[^\s<>]+|\*(?!\s)|[\\_~|`]|^(?=#{1,3} |-# )/gm;

/** Discord's Markdown: what is said as text stays text, lists and quotes stay what they are. */
export const DISCORD_MARKDOWN: Dialect = {
  ...MARKDOWN,
  escape: (text) => text.replace(MARKS, (found) => found.startsWith("http") ? found : `\\${found}`),
  verbatim: (text) => text,
};

/** A text of Discord as a person typed it: mentions and emojis in words. */
export function plainText(text: string, people: readonly { id: string; username: string }[]): string {
  return text
    .replace(/<@!?(\d+)>/g, (_all, id) => `@${people.find((one) => one.id === id)?.username ?? id}`)
    .replace(/<@&(\d+)>/g, "@role-$1")
    .replace(/<#(\d+)>/g, "#$1")
    .replace(/<a?:(\w+):\d+>/g, ":$1:");
}
