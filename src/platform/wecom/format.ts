import type { Dialect } from "../markdown.ts";

// `<@id>` mentions somebody, `<@all>` everybody: a blank that nobody sees takes that away.
const harmless = (text: string) => text.replaceAll("<@", "<\u200b@");

/** WeCom's Markdown; it knows no escapes, so what is no mark of ours stays as it is. */
export const WECOM_MARKDOWN: Dialect = {
  escape: harmless,
  bold: (text) => `**${text}**`,
  italic: (text) => `*${text}*`,
  strike: (text) => text,
  heading: (text) => `### ${text}`,
  link: (label, address) => `[${label}](${address})`,
  code: (text) => `\`${text}\``,
  block: (text, language) => `\`\`\`${language}\n${text}\n\`\`\``,
};
