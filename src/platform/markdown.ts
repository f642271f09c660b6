import { scanMarkdown } from "../domain/chat/markdown.ts";

/**
 * Functions that build the markup of a platform. `escape` and `verbatim` get plain text, the other functions get text in the platform's
 * dialect.
 */
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
  /** Whether a quoted code block keeps its quote marks. */
  quotesBlocks?: boolean;
}

/** Dialect of the platforms that read Markdown. Each adds an `escape`. */
export const MARKDOWN: Omit<Dialect, "escape"> = {
  bold: (text) => `**${text}**`,
  italic: (text) => `*${text}*`,
  strike: (text) => `~~${text}~~`,
  heading: (text) => `### ${text}`,
  link: formatMarkdownLink,
  code: formatCodeSpan,
  block: formatFencedBlock,
  quotesBlocks: true,
};

/** Formats a link for simple readers of Markdown, which end an address at the first parenthesis. */
export function formatMarkdownLink(label: string, address: string): string {
  const shown = isBalanced(label) ? label : label.replace(/(?<!\\)[[\]]/g, "\\$&");
  return `[${shown}](${address.replace(/[()]/g, (mark) => mark === "(" ? "%28" : "%29")})`;
}

function isBalanced(label: string): boolean {
  let depth = 0;
  for (const mark of label.match(/[[\]]/g) ?? []) {
    depth += mark === "[" ? 1 : -1;
    if (depth < 0) return false;
  }
  return depth === 0;
}

/** Formats code with more backticks around it than the code has in a row. */
export function formatCodeSpan(text: string): string {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const marks = "`".repeat(longest + 1);
  return longest === 0 ? `\`${text}\`` : `${marks} ${text} ${marks}`;
}

/**
 * Formats a code block with three backticks, the only number that chats know. An invisible character splits three backticks in the code.
 */
export function formatFencedBlock(text: string, language: string): string {
  return `\`\`\`${language}\n${text.replace(/`(?=``)/g, "`\u200b")}\n\`\`\``;
}

/** Translates code, bold, italic, strike, headings and links of Markdown. A mark without an end stays text. */
export function translateMarkdown(markdown: string, dialect: Dialect): string {
  const text = markdown.replace(/\r\n?/g, "\n");
  let shown = "";
  let done = 0;
  let block: { mark: string; depth: number; language: string; code: string[]; end: number } | null = null;
  const finishBlock = () => {
    if (block === null) return;
    shown += block.mark + formatBlock(block.code.join("\n"), block, dialect);
    done = block.end;
    block = null;
  };
  for (const { kind, start, end, from, fence } of scanMarkdown(text)) {
    if (kind === "text" || kind === "open") finishBlock();
    if (kind === "open" && fence !== null) {
      shown += formatInline(text.slice(done, start), dialect);
      const [mark = ""] = /^ *(?:[-+*]|\d+[.)])[ \t]/.exec(text.slice(start, end)) ?? [];
      const [language = ""] = /^[\w+#.-]*/.exec(fence.info.trim()) ?? [];
      block = { mark: dialect.escape(mark), depth: fence.depth, language, code: [], end };
    } else if (block !== null) {
      if (kind === "code") block.code.push(text.slice(from, end));
      block.end = end;
    }
  }
  finishBlock();
  return shown + formatInline(text.slice(done), dialect);
}

function formatBlock(
  code: string,
  { language, depth }: { language: string; depth: number },
  dialect: Dialect,
): string {
  const block = dialect.block((dialect.verbatim ?? dialect.escape)(code), language);
  return depth > 0 && dialect.quotesBlocks === true ? block.replace(/^/gm, "> ".repeat(depth)) : block;
}

const LABEL = String.raw`\[((?:[^[\]\n\\${"`"}]|\\.|${"`[^`\\n]+`"}|\[(?:[^[\]\n\\]|\\.)*\])+)\]`;
const ADDRESS = String
  .raw`\((?:<(https?:\/\/[^<>\n]+)>|(https?:\/\/(?:[^\s()<>"]|\((?:[^\s()<>"]|\([^\s()<>"]*\))*\))+))`;
const HEADING = /^#{1,6} +([^\n]+)$/;
// Keeps the numbers of the groups.
const NO_HEADING = /(?!)()/;
const TEXT = buildInline(HEADING);
const PART_OF_LINE = buildInline(NO_HEADING);

function buildInline(heading: RegExp): RegExp {
  const forms = [
    heading,
    /(?<!`)(`+)(?!`)((?:[^\n]|\n(?!\s*\n))+?)(?<!`)\2(?!`)/,
    /\*\*(?=\S)((?:[^*\n]|\*(?!\*))+?)\*\*/,
    /(?<![\w*])\*(?=\S)([^*\n]+?)\*(?![\w*])/,
    /~~(?=\S)([^~\n]+?)~~/,
    new RegExp(String.raw`${LABEL}${ADDRESS}(?:[ ]+"[^"\n]*")?\)`),
  ];
  return new RegExp(forms.map(({ source }) => source).join("|"), "gm");
}

function formatInline(text: string, dialect: Dialect, forms = TEXT): string {
  let shown = "";
  let done = 0;
  for (const found of text.matchAll(forms)) {
    const [all, heading, , code, bold, italic, strike, label, quotedAddress, address] = found;
    const inside = (part: string) => formatInline(part, dialect, PART_OF_LINE);
    shown += dialect.escape(text.slice(done, found.index));
    done = found.index + all.length;
    if (heading !== undefined) shown += dialect.heading(inside(heading));
    else if (code !== undefined) shown += dialect.code((dialect.verbatim ?? dialect.escape)(trimCode(code)));
    else if (bold !== undefined) shown += dialect.bold(inside(bold));
    else if (italic !== undefined) shown += dialect.italic(inside(italic));
    else if (strike !== undefined) shown += dialect.strike(inside(strike));
    else {
      const target = (quotedAddress ?? address ?? "").replaceAll(" ", "%20").replaceAll("|", "%7C");
      shown += dialect.link(inside((label ?? "").replace(/\\([[\]])/g, "$1")), dialect.escape(target));
    }
  }
  return shown + dialect.escape(text.slice(done));
}

function trimCode(code: string): string {
  const line = code.replaceAll("\n", " ");
  return /^ .*\S.* $/.test(line) ? line.slice(1, -1) : line;
}
