/** How a platform writes what Markdown writes; each function gets text whose inside is in the dialect already. */
export interface Dialect {
  /** Plain text and code, so that nothing in it is a mark. */
  escape: (text: string) => string;
  bold: (text: string) => string;
  italic: (text: string) => string;
  strike: (text: string) => string;
  /** A heading, where there are none: something bold. */
  heading: (text: string) => string;
  link: (label: string, address: string) => string;
  code: (text: string) => string;
  /** What is inside of code, where that is not escaped as other text is. */
  verbatim?: (text: string) => string;
  block: (text: string, language: string) => string;
}

/** For platforms that read Markdown themselves; each escapes in its own way, and leaves out what it does not know. */
export const MARKDOWN: Omit<Dialect, "escape"> = {
  bold: (text) => `**${text}**`,
  italic: (text) => `*${text}*`,
  strike: (text) => `~~${text}~~`,
  heading: (text) => `### ${text}`,
  link: (label, address) => `[${label}](${address})`,
  code: (text) => `\`${text}\``,
  block: (text, language) => `\`\`\`${language}\n${text}\n\`\`\``,
};

const BLOCK = /(```[^\n]*\n[\s\S]*?(?:\n```|```)(?=\n|$))/;
const INLINE =
  /^#{1,6} +([^\n]+)$|`([^`\n]+)`|\*\*(?=\S)((?:[^*\n]|\*(?!\*))+?)\*\*|(?<![\w*])\*(?=\S)([^*\n]+?)\*(?![\w*])|~~(?=\S)([^~\n]+?)~~|\[([^\]\n]+)\]\((https?:\/\/[^\s)"]+)\)/gm;

/** Markdown in the dialect of a platform: code, bold, italic, strike, headings, links. What is not closed stays text (contract 10.3). */
export function inDialect(markdown: string, dialect: Dialect): string {
  return markdown.split(BLOCK).map((piece, at) =>
    at % 2 === 1 ? block(piece, dialect) : inline(piece, dialect)
  )
    .join("");
}

function block(piece: string, dialect: Dialect): string {
  const language = /^```(\w*)/.exec(piece)?.[1] ?? "";
  const text = piece.replace(/^```[^\n]*\n/, "").replace(/\n?```$/, "");
  return dialect.block((dialect.verbatim ?? dialect.escape)(text), language);
}

function inline(text: string, dialect: Dialect): string {
  let shown = "";
  let done = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, heading, code, bold, italic, strike, label, address] = found;
    const inside = (part: string) => inline(part, dialect);
    shown += dialect.escape(text.slice(done, found.index));
    done = found.index + all.length;
    if (heading !== undefined) shown += dialect.heading(inside(heading));
    else if (code !== undefined) shown += dialect.code((dialect.verbatim ?? dialect.escape)(code));
    else if (bold !== undefined) shown += dialect.bold(inside(bold));
    else if (italic !== undefined) shown += dialect.italic(inside(italic));
    else if (strike !== undefined) shown += dialect.strike(inside(strike));
    else shown += dialect.link(inside(label ?? ""), dialect.escape(address ?? ""));
  }
  return shown + dialect.escape(text.slice(done));
}
