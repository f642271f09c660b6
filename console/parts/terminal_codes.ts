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
