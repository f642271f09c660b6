/** A text with secrets masked: each as a whole, and what a cut has left of it. */
export function maskedText(secrets: readonly string[], text: string): string {
  return secrets.reduce(masked, text);
}

// Fewer letters of a secret are also found where there is none.
const PART_MIN_CHARACTERS = 12;
// Where the end of a text was cut off: at its end, or before the mark that we put there.
const CUT = /\s*(?:…|\[cut\b|$)/y;

function masked(text: string, secret: string): string {
  return withoutStart(withoutEnd(text.replaceAll(secret, "*".repeat(secret.length)), secret), secret);
}

// An engine keeps only the end of a long error, which may start in the middle of a secret: a token ends with its signature.
function withoutEnd(text: string, secret: string): string {
  const letters = secret.slice(-PART_MIN_CHARACTERS);
  return withoutParts(text, letters, (at) => {
    const rest = secret.length - letters.length;
    let more = 0;
    while (more < Math.min(rest, at) && text[at - more - 1] === secret[rest - more - 1]) more++;
    return [at - more, at + letters.length];
  });
}

// Of what is too long only the start is kept, which may end in the middle of a secret. Elsewhere it is none: tokens begin alike.
function withoutStart(text: string, secret: string): string {
  const letters = secret.slice(0, PART_MIN_CHARACTERS);
  return withoutParts(text, letters, (at) => {
    let end = at + letters.length;
    while (end < text.length && text[end] === secret[end - at]) end++;
    CUT.lastIndex = end;
    return [at, CUT.test(text) ? end : at];
  });
}

/** The text with a part masked wherever these letters are; `partAt` tells from where to where. */
function withoutParts(text: string, letters: string, partAt: (at: number) => [number, number]): string {
  let safe = "";
  let done = 0;
  for (let at = text.indexOf(letters); at !== -1; at = text.indexOf(letters, at + 1)) {
    const [start, end] = partAt(at);
    const from = Math.max(start, done);
    if (end <= from) continue;
    safe += text.slice(done, from) + "*".repeat(end - from);
    done = end;
  }
  return safe + text.slice(done);
}
