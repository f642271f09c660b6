export const ESC = "\\x1b";
export const SGR = new RegExp(`${ESC}\\[[\\d;]*m`, "g");
// Codes that move the cursor, set the window title or beep have no effect in a page.
const OTHER = new RegExp(
  `${ESC}\\[[\\d;?]*[A-Za-ln-z]|${ESC}\\][^\\x07${ESC}]*(\\x07|${ESC}\\\\)|${ESC}[()][A-Z0-9]|` +
    "[\\x00-\\x08\\x0b-\\x1a\\x1c-\\x1f\\x7f]",
  "g",
);

/** Returns a line without the codes of a terminal. */
export function stripCodes(text: string): string {
  return removeControls(text).replace(SGR, "");
}

/** Returns a line with the codes of its colors only. A progress bar overwrites its line, so only its last state remains. */
export function removeControls(text: string): string {
  const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
  return whole.slice(whole.lastIndexOf("\r") + 1).replace(OTHER, "");
}

/** Returns a text of several lines without the codes of a terminal. */
export function stripText(text: string): string {
  return text.includes("\x1b") ? text.replaceAll("\r\n", "\n").split("\n").map(stripCodes).join("\n") : text;
}

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
