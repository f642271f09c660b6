import { type Dialect, MARKDOWN } from "../markdown.ts";

// `<@id>` mentions somebody, `<@all>` everybody: a blank that nobody sees takes that away.
const harmless = (text: string) => text.replaceAll("<@", "<\u200b@");

/** WeCom's Markdown; it knows no escapes, so what is no mark of ours stays as it is. */
export const WECOM_MARKDOWN: Dialect = {
  ...MARKDOWN,
  escape: harmless,
  strike: (text) => text,
};
