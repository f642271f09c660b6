import type { Dialect } from "../markdown.ts";

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
