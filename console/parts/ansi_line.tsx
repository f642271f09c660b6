import Anser from "anser";
import { useMemo } from "preact/hooks";

const ESC = "\\x1b";
const SGR = new RegExp(`${ESC}\\[[\\d;]*m`, "g");
// What moves a cursor, names a window or rings a bell has no meaning here.
const OTHER = new RegExp(
  `${ESC}\\[[\\d;?]*[A-Za-ln-z]|${ESC}\\][^\\x07${ESC}]*(\\x07|${ESC}\\\\)|${ESC}[()][A-Z0-9]|` +
    "[\\x00-\\x08\\x0b-\\x1a\\x1c-\\x1f\\x7f]",
  "g",
);
const BEFORE_FIRST = new RegExp(`^[^${ESC}]*`);

/** One line with a terminal's colours. `open` is what lines before it have left switched on. */
export function AnsiLine({ text, open }: { text: string; open: string }) {
  const parts = useMemo(
    () => Anser.ansiToJson(open + plainOf(text), { use_classes: true, remove_empty: true }),
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

/** What is switched on behind a line: to be carried into the next. */
export function openBehind(open: string, text: string): string {
  if (!text.includes("\x1b[")) return open;
  let now = open;
  for (const [code] of text.matchAll(SGR)) now = /\[0?m$/.test(code) ? "" : now + code;
  // Nobody needs more than the last few.
  return now.slice(-64).replace(BEFORE_FIRST, "");
}

/** A line without a terminal's signs, for searching and copying. */
export function bareText(text: string): string {
  return plainOf(text).replace(SGR, "");
}

// A progress bar writes itself over: its last state is what a terminal would show.
function plainOf(text: string): string {
  const shown = text.endsWith("\r") ? text.slice(0, -1) : text;
  return shown.slice(shown.lastIndexOf("\r") + 1).replace(OTHER, "");
}
