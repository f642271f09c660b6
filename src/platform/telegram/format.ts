import { type Dialect, formatCodeSpan } from "../markdown.ts";

/** The HTML that Telegram reads. */
export const TELEGRAM_HTML: Dialect = {
  escape: (text) =>
    text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;"),
  bold: (text) => `<b>${text}</b>`,
  italic: (text) => `<i>${text}</i>`,
  strike: (text) => `<s>${text}</s>`,
  heading: (text) => `<b>${text}</b>`,
  link: (label, address) => `<a href="${address}">${label}</a>`,
  code: (text) => `<code>${text}</code>`,
  block: (text) => `<pre>${text}</pre>`,
};

/** A Telegram entity: a format of a part of the text. Telegram counts UTF-16 units. */
export interface Entity {
  type: string;
  offset: number;
  length: number;
  language?: string;
}

/** Writes code and quotes as Markdown. Telegram removes the marks that a person typed. */
export function formatEntities(text: string, entities: readonly Entity[] = []): string {
  let shown = "";
  let done = 0;
  for (const { type, offset, length, language = "" } of entities) {
    const format = FORMATS[type];
    if (format === undefined || offset < done || length <= 0) continue;
    const before = shown + text.slice(done, offset);
    const inside = text.slice(offset, offset + length).replace(/\n$/, "");
    const { marked, isBlock } = format(inside, language);
    done = offset + inside.length;
    const start = isBlock && before !== "" && !before.endsWith("\n") ? "\n" : "";
    const end = isBlock && done < text.length && text[done] !== "\n" ? "\n" : "";
    shown = before + start + marked + end;
  }
  return shown + text.slice(done);
}

type Format = (text: string, language: string) => { marked: string; isBlock: boolean };

const quote: Format = (text) => ({ marked: text.replace(/^/gm, "> "), isBlock: true });
const FORMATS: Record<string, Format | undefined> = {
  code: (text) => ({ marked: formatCodeSpan(text), isBlock: false }),
  pre: formatPre,
  blockquote: quote,
  expandable_blockquote: quote,
};

function formatPre(text: string, language: string): { marked: string; isBlock: boolean } {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const marks = "`".repeat(longest + 1);
  return { marked: `${marks}${language}\n${text}\n${marks}`, isBlock: true };
}
