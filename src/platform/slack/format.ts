import type { Dialect } from "../markdown.ts";

/** Slack's mrkdwn. Escaped text mentions no person. */
export const SLACK_MRKDWN: Dialect = {
  escape: (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"),
  bold: (text) => `*${text}*`,
  italic: (text) => `_${text}_`,
  strike: (text) => `~${text}~`,
  heading: (text) => `*${text}*`,
  link: (label, address) => `<${address}|${label}>`,
  code: (text) => `\`${text}\``,
  block: (text) => `\`\`\`\n${text}\n\`\`\``,
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
