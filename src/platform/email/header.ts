export interface HeaderField {
  /** In lower case. */
  name: string;
  /** On one line. */
  value: string;
}

const decoder = new TextDecoder();

/**
 * Parses the header of a mail, in its order. Returns null when the bytes end before the header does. Any line break ends a line, also one
 * that a mail server keeps as a character: no field can hide after it.
 */
export function parseHeader(bytes: Uint8Array): HeaderField[] | null {
  const fields: HeaderField[] = [];
  // The last line can be incomplete.
  for (const line of decoder.decode(bytes).split(/\r\n|\r|\n/).slice(0, -1)) {
    if (line === "") return fields;
    const last = fields.at(-1);
    if (/^[ \t]/.test(line)) {
      if (last !== undefined) last.value += ` ${line.trim()}`;
      continue;
    }
    const [, name, value = ""] = /^([!-9;-~]+)[ \t]*:(.*)$/.exec(line) ?? [];
    if (name !== undefined) fields.push({ name: name.toLowerCase(), value: value.trim() });
  }
  return null;
}

export function listValues(header: readonly HeaderField[], name: string): string[] {
  return header.filter((field) => field.name === name).map(({ value }) => value);
}

/** Replaces comments, which can be nested, with a space. Keeps quoted strings. */
export function removeComments(value: string): string {
  let depth = 0;
  let isQuoted = false;
  let kept = "";
  for (let at = 0; at < value.length; at++) {
    const character = value[at] ?? "";
    if (character === "\\") {
      if (depth === 0) kept += value.slice(at, at + 2);
      at++;
    } else if (isQuoted) {
      isQuoted = character !== '"';
      kept += character;
    } else if (character === "(") {
      depth++;
      kept += " ";
    } else if (character === ")" && depth > 0) depth--;
    else if (depth === 0) {
      isQuoted = character === '"';
      kept += character;
    }
  }
  return kept;
}

/** Lists the ids of messages in `Message-ID`, `In-Reply-To` or `References`, without their brackets. */
export function listMessageIds(header: readonly HeaderField[], name: string): string[] {
  const found = listValues(header, name).join(" ").match(/<[^<>\s]{1,900}>/g) ?? [];
  return found.map((id) => id.slice(1, -1));
}
