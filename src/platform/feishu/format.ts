import type { Dialect } from "../markdown.ts";

const MARKS: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  "*": "&#42;",
  "~": "&#126;",
  "_": "&#95;",
  "`": "&#96;",
  "[": "&#91;",
  "]": "&#93;",
};

/** The Markdown of Feishu's cards; what is escaped can mention nobody. */
export const FEISHU_MARKDOWN: Dialect = {
  escape: (text) => text.replace(/[&<>*~_`[\]]/g, (mark) => MARKS[mark] ?? mark),
  verbatim: mentionless,
  bold: (text) => `**${text}**`,
  italic: (text) => `*${text}*`,
  strike: (text) => `~~${text}~~`,
  heading: (text) => `**${text}**`,
  link: (label, address) => `[${label}](${unescaped(address).replace(/[<>]/g, encodeURIComponent)})`,
  code: (text) => `\`${text}\``,
  block: (text, language) => `\`\`\`${language}\n${text}\n\`\`\``,
};

/** A text whose tags mention nobody, wherever Feishu reads tags: an invisible character stands behind the bracket. */
export function mentionless(text: string): string {
  return text.replace(/<(?=\/?\s*(?:at|person)\b)/gi, "<\u200b");
}

// In an address entities are no characters.
function unescaped(address: string): string {
  const pairs = Object.entries(MARKS).reverse();
  return pairs.reduce((text, [mark, name]) => text.replaceAll(name, mark), address);
}
