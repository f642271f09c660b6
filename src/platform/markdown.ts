/** Builds the markup of a platform. `escape` and `verbatim` get plain text, the other functions text in the dialect. */
export interface Dialect {
  /** Escapes marks in plain text and code. */
  escape: (text: string) => string;
  bold: (text: string) => string;
  italic: (text: string) => string;
  strike: (text: string) => string;
  /** Bold text for a platform without headings. */
  heading: (text: string) => string;
  link: (label: string, address: string) => string;
  code: (text: string) => string;
  /** Escapes code. Default: `escape`. */
  verbatim?: (text: string) => string;
  block: (text: string, language: string) => string;
}

/** Dialect of the platforms that read Markdown. Each adds an `escape`. */
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

/** Translates code, bold, italic, strike, headings and links of Markdown. A mark without an end stays text. */
export function translateMarkdown(markdown: string, dialect: Dialect): string {
  return markdown.split(BLOCK).map((piece, at) =>
    at % 2 === 1 ? formatBlock(piece, dialect) : formatInline(piece, dialect)
  )
    .join("");
}

function formatBlock(piece: string, dialect: Dialect): string {
  const language = /^```(\w*)/.exec(piece)?.[1] ?? "";
  const text = piece.replace(/^```[^\n]*\n/, "").replace(/\n?```$/, "");
  return dialect.block((dialect.verbatim ?? dialect.escape)(text), language);
}

function formatInline(text: string, dialect: Dialect): string {
  let shown = "";
  let done = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, heading, code, bold, italic, strike, label, address] = found;
    const inside = (part: string) => formatInline(part, dialect);
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
