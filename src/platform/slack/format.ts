import { type Dialect, formatFencedBlock } from "../markdown.ts";

/** Slack's mrkdwn. Escaped text mentions no person. */
export const SLACK_MRKDWN: Dialect = {
  escape: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  bold: (text) => `*${text}*`,
  italic: (text) => `_${text}_`,
  strike: (text) => `~${text}~`,
  heading: (text) => `*${text}*`,
  link: (label, address) => `<${address}|${label}>`,
  // Slack's code can't contain backticks.
  code: (text) => text.includes("`") ? text : `\`${text}\``,
  block: (text) => formatFencedBlock(text, ""),
};

/** Replaces mentions, channels and links with their names. */
export function formatPlainText(text: string): string {
  return text
    .replace(/<@(\w+)(?:\|([^>]*))?>/g, (_all, id, name) => `@${name ?? id}`)
    .replace(/<#(\w+)(?:\|([^>]*))?>/g, (_all, id, name) => `#${name || id}`)
    .replace(/<!(\w+)[^>]*>/g, "@$1")
    .replace(/<((?:https?|mailto):[^|>]+)(?:\|[^>]*)?>/g, "$1")
    .replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
