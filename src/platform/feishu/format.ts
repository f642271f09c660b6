import { type Dialect, formatCodeSpan, formatFencedBlock, formatMarkdownLink } from "../markdown.ts";

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

/** Markdown of Feishu's cards. Escaped text mentions no person. */
export const FEISHU_MARKDOWN: Dialect = {
  escape: (text) => text.replace(/[&<>*~_`[\]]/g, (mark) => MARKS[mark] ?? mark),
  verbatim: removeMentions,
  bold: (text) => `**${text}**`,
  italic: (text) => `*${text}*`,
  strike: (text) => `~~${text}~~`,
  heading: (text) => `**${text}**`,
  link: (label, address) => formatMarkdownLink(label, unescape(address).replace(/[<>]/g, encodeURIComponent)),
  code: formatCodeSpan,
  block: formatFencedBlock,
};

/** Puts an invisible character into tags that would mention a person. */
export function removeMentions(text: string): string {
  return text.replace(/<(?=\/?\s*(?:at|person)\b)/gi, "<\u200b");
}

// Feishu does not decode entities in an address.
function unescape(address: string): string {
  const pairs = Object.entries(MARKS).reverse();
  return pairs.reduce((text, [mark, name]) => text.replaceAll(name, mark), address);
}
