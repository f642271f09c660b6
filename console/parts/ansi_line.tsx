import Anser from "anser";
import { useMemo } from "preact/hooks";

const ESC = "\\x1b";
const SGR = new RegExp(`${ESC}\\[[\\d;]*m`, "g");
// Codes that move the cursor, set the window title or beep have no effect in a page.
const OTHER = new RegExp(
  `${ESC}\\[[\\d;?]*[A-Za-ln-z]|${ESC}\\][^\\x07${ESC}]*(\\x07|${ESC}\\\\)|${ESC}[()][A-Z0-9]|` +
    "[\\x00-\\x08\\x0b-\\x1a\\x1c-\\x1f\\x7f]",
  "g",
);
const BEFORE_FIRST = new RegExp(`^[^${ESC}]*`);

/** A line with the colors of a terminal. `open` holds the codes that are active at its start. */
export function AnsiLine({ text, open }: { text: string; open: string }) {
  const parts = useMemo(
    () => Anser.ansiToJson(open + removeControls(text), { use_classes: true, remove_empty: true }),
    [text, open],
  );
  return (
    <>
      {parts.map((part, index) => {
        const names = [part.fg, part.bg && `${part.bg}-bg`, ...part.decorations].filter(Boolean).join(" ");
        return names === "" ? part.content : <span key={index} class={names}>{part.content}</span>;
      })}
    </>
  );
}

/** Returns the codes that are active after a line. */
export function carryCodes(open: string, text: string): string {
  if (!text.includes("\x1b[")) return open;
  let now = open;
  for (const [code] of text.matchAll(SGR)) now = /\[0?m$/.test(code) ? "" : now + code;
  // Later codes replace earlier ones, so the last few are enough.
  return now.slice(-64).replace(BEFORE_FIRST, "");
}

/** Returns a line without the codes of a terminal, for searching and copying. */
export function stripCodes(text: string): string {
  return removeControls(text).replace(SGR, "");
}

// A progress bar overwrites its line, so only its last state remains, as in a terminal.
function removeControls(text: string): string {
  const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
  return whole.slice(whole.lastIndexOf("\r") + 1).replace(OTHER, "");
}
