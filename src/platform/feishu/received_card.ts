import { createContent, type MessageContent } from "../quotes.ts";

/** An element of a card, in one of Feishu's three card formats. */
interface Node {
  tag?: string;
  href?: string;
  url?: string;
  text?: unknown;
  [key: string]: unknown;
}

const DEPTH_MAX = 12;
/** Fields with text or elements, in the order in which a card shows them. */
const INNER = [
  "header",
  "title",
  "subtitle",
  "text",
  "content",
  "fields",
  "columns",
  "elements",
  "body",
  "rows",
];
const INLINE = ["text", "a", "at", "emotion", "img", "button"];
// Controls, which a person can use and an agent cannot.
const CONTROLS = /^(?:action|button|input|overflow|select|picker|date|checker|form_button|multi_select)/;
/** Feishu's text in place of a card that it does not describe. */
const NO_TEXT = /^\s*请升级至最新版本客户端.{0,3}以查看内容\s*$/;

/** Formats the text of a card. Images of a card cannot be fetched. */
export function formatCard(card: object): MessageContent {
  const unreadable: string[] = [];
  const text = formatNode(pickLanguage(card), unreadable, 0);
  return NO_TEXT.test(text) ? createContent() : createContent({ text, unreadable: [...new Set(unreadable)] });
}

function pickLanguage(card: object): object {
  if (!("i18n_elements" in card) || typeof card.i18n_elements !== "object" || card.i18n_elements === null) {
    return card;
  }
  return { elements: Object.values(card.i18n_elements)[0], ...card };
}

function formatNode(node: unknown, unreadable: string[], depth: number): string {
  if (typeof node === "string") return node;
  if (typeof node !== "object" || node === null || depth > DEPTH_MAX) return "";
  const format = (one: unknown) => formatNode(one, unreadable, depth + 1);
  if (Array.isArray(node)) {
    const isLine = node.every((one) => INLINE.includes(one?.tag));
    return node.map(format).filter((text) => text !== "").join(isLine ? "" : "\n");
  }
  const { tag = "", href, url, ...rest } = node as Node;
  if (CONTROLS.test(tag)) return "";
  if (tag === "hr") return "---";
  if (tag === "at") return `@${format(rest.user_name) || format(rest.user_id)}`;
  if (tag === "img" || tag === "image") unreadable.push("a picture in a card");
  const text = INNER.map((key) => format(rest[key])).filter((one) => one !== "").join("\n");
  const address = href ?? url;
  return tag === "a" && typeof address === "string" && address !== text ? `${text} (${address})` : text;
}
