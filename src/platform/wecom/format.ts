import { type Dialect, MARKDOWN } from "../markdown.ts";

// An invisible blank turns off the mentions `<@id>` and `<@all>`.
const disableMentions = (text: string) => text.replaceAll("<@", "<\u200b@");

/** WeCom's Markdown, which has no escapes. */
export const WECOM_MARKDOWN: Dialect = {
  ...MARKDOWN,
  escape: disableMentions,
  strike: (text) => text,
};
