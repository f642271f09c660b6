import Anser from "anser";
import { useMemo } from "preact/hooks";
import { ESC, removeControls, SGR } from "./plain_text.ts";

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
