// deno-lint-ignore no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
// A joiner between two pictures forms one emoji and hides nothing.
const HIDDEN =
  /(?<![\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d|\u200d(?!\p{Extended_Pictographic})|[\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;

// A color sequence: ESC [ numbers m.
// deno-lint-ignore no-control-regex
const COLOUR = /(\u001b\[[0-9;:]*m)/;
const RESET = "\u001b[0m";
// Attribute 8 hides text, except as part of a color number.
const CONCEALS = /^(?!.*[34]8[;:]).*[[;:]0*8[;:m]/;

/** Escapes a line of an agent like escapeControls(), with or without its colors. No color reaches the next line. */
export function escapeLine(line: string, hasColors: boolean): string {
  const pieces = line.split(COLOUR);
  if (pieces.length === 1) return escapeControls(line);
  const shown = pieces.map((piece, at) => {
    if (at % 2 === 0) return escapeControls(piece);
    return hasColors && !CONCEALS.test(piece) ? piece : "";
  }).join("");
  return hasColors ? shown + RESET : shown;
}

/**
 * Replaces control characters, which could drive the terminal, and spells out invisible and direction-changing
 * characters, such as `\u{202E}` (contract 8.1).
 */
export function escapeControls(value: string): string {
  return value.replace(CONTROLS, "\ufffd").replace(
    HIDDEN,
    (character) => `\\u{${character.codePointAt(0)?.toString(16).toUpperCase()}}`,
  );
}

// Characters that JSON allows unescaped but that drive a terminal: DEL and C1.
const RAW_IN_JSON = /[\u007f-\u009f]/g;

/** Escapes a JSON text for a terminal without changing its value (contract 6.7). */
export function escapeJson(json: string): string {
  const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return json.replace(RAW_IN_JSON, escape).replace(HIDDEN, escape);
}
