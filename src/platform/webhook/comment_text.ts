// A mention of an account, or of a team or group. An address such as a@b.c is none.
const MENTION = /(?:(?<![A-Za-z0-9\\])|\\+)@([A-Za-z0-9_][\w-]*(?:(?:[./]|\\*@)[\w-]+)*)/g;
// Forges look for mentions in the finished page, where such an entity is an @.
const AT_ENTITY = /&(?:#0*64|#x0*40|commat);/gi;
// GitLab, and bots on other forges, run a comment's line that starts with a slash as a command.
const COMMAND = /^([ \t>*+-]*)(\/[A-Za-z][\w-]*)(?=\s|$)/;
const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
// In HTML, backticks make no code.
const HTML = /<(?=[A-Za-z/!?])/g;
// In such a text, a line of backticks may be no fence: formulas, quotes in several lines, front matter.
const UNUSUAL = /^ {0,3}\$\$|^ {0,3}>>>|^(?:---|\+\+\+|;;;)/m;

// Forges make a link of an address, and take the backticks in it for a part of the address.
const TICK_IN_ADDRESS = /(?::\/\/|\bwww\.)\S*`/i;

/**
 * Puts mentions and commands of a reply into code spans, so that the forge acts on none of them. Shows HTML as text. Leaves code
 * unchanged.
 */
export function disarmComment(text: string): string {
  const plain = text.replace(AT_ENTITY, "@");
  const longest = Math.max(1, ...[...plain.matchAll(/`+/g)].map(([run]) => run.length));
  // No other run of backticks has this length, so nothing in the text can end the code span or join it.
  const ticks = "`".repeat(longest + 1);
  const lines = plain.split("\n");
  const code = UNUSUAL.test(plain) ? new Set<number>() : findCodeLines(lines);
  return lines.map((line, at) =>
    code.has(at) ? line : disarmLine(line, ticks, areSpansPlain(lines, at, code))
  ).join("\n");
}

/** Finds the lines of closed fences. A fence that nothing closes counts as text. */
function findCodeLines(lines: readonly string[]): Set<number> {
  const code = new Set<number>();
  let open: { at: number; fence: string } | null = null;
  for (const [at, line] of lines.entries()) {
    const [, fence = "", info = ""] = FENCE.exec(line) ?? [];
    if (fence === "") continue;
    if (open === null) {
      open = { at, fence };
    } else if (fence[0] === open.fence[0] && fence.length >= open.fence.length && info.trim() === "") {
      for (let inside = open.at; inside <= at; inside++) code.add(inside);
      open = null;
    }
  }
  return code;
}

// Whether each line of the paragraph has its code spans for itself: single backticks in pairs, none escaped or in an address.
function areSpansPlain(lines: readonly string[], at: number, code: ReadonlySet<number>): boolean {
  const isInside = (line: string | undefined, index: number) =>
    line !== undefined && line.trim() !== "" && !code.has(index);
  let first = at;
  while (isInside(lines[first - 1], first - 1)) first--;
  for (let index = first; isInside(lines[index], index); index++) {
    const line = lines[index] ?? "";
    const count = line.split("`").length - 1;
    if (count % 2 === 1 || /``|\\`/.test(line) || TICK_IN_ADDRESS.test(line)) return false;
  }
  return true;
}

function disarmLine(line: string, ticks: string, hasPlainSpans: boolean): string {
  const parts = hasPlainSpans ? line.split("`") : [line];
  const shown = parts.map((part, at) => {
    // The odd parts are in code spans.
    if (at % 2 === 1) return part;
    const named = disarmMentions(part.replace(HTML, "&lt;"), ticks, {
      afterCode: at > 0,
      beforeCode: at < parts.length - 1,
    });
    return at > 0
      ? named
      : named.replace(COMMAND, (_match, before, word) => `${before}${ticks}${word}${ticks}`);
  });
  return shown.join("`");
}

// A run of backticks next to another one would be one longer run.
function disarmMentions(
  text: string,
  ticks: string,
  { afterCode, beforeCode }: { afterCode: boolean; beforeCode: boolean },
): string {
  return text.replace(MENTION, (match: string, name: string, at: number) => {
    const end = at + match.length;
    const before = at === 0 ? afterCode : text[at - 1] === "`";
    const after = end === text.length ? beforeCode : text[end] === "`";
    return `${before ? " " : ""}${ticks}@${name}${ticks}${after ? " " : ""}`;
  });
}
