import { stripText } from "./terminal_codes.ts";

// A preview needs only the start of a text.
const READ_MAX_CHARACTERS = 1_000;

/** Returns the start of a Markdown text as one line without its signs, for a preview. */
export function formatPreview(markdown: string): string {
  return stripText(markdown.slice(0, READ_MAX_CHARACTERS))
    .replace(/^\s*(```|~~~).*$/gm, "")
    .replace(/^\s*\|?[\s|:-]+\|[\s|:-]*$/gm, "")
    .replace(/^\s{0,3}(#{1,6}|>|[-*+]|\d+[.)])\s+(\[[ xX]\]\s+)?/gm, "")
    .replace(/!?\[([^\]]*)\]\([^)\s]*\)/g, "$1")
    .replace(/(\*\*|__|~~)(?=\S)(.+?)\1/g, "$2")
    .replace(/(^|[\s(])([*_])(?=\S)(.+?)\2(?=$|[\s).,;:!?])/g, "$1$3")
    .replace(/`+([^`]+)`+/g, "$1")
    .replace(/^\s*\||\|\s*$/gm, "")
    .replace(/\s*\|\s*/g, " · ")
    .replace(/\s+/g, " ")
    .trim();
}
