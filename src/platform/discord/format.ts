import { type Dialect, MARKDOWN } from "../markdown.ts";

// An escape would break an address. A `*` before a blank is no mark: it starts a list, or multiplies.
const MARKS = /https?:\/\/[^\s<>]+|\*(?!\s)|[\\_~|`]|^(?=#{1,3} |-# )/gm;

/** Escapes marks in text, but not lists and quotes. */
export const DISCORD_MARKDOWN: Dialect = {
  ...MARKDOWN,
  escape: (text) => text.replace(MARKS, (found) => found.startsWith("http") ? found : `\\${found}`),
  verbatim: (text) => text,
};

/** Replaces mentions and emojis with their names. */
export function formatPlainText(text: string, people: readonly { id: string; username: string }[]): string {
  return text
    .replace(/<@!?(\d+)>/g, (_all, id) => `@${people.find((one) => one.id === id)?.username ?? id}`)
    .replace(/<@&(\d+)>/g, "@role-$1")
    .replace(/<#(\d+)>/g, "#$1")
    .replace(/<a?:(\w+):\d+>/g, ":$1:");
}
