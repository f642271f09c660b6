/** Masks secrets in a text, also when only the start or end of a secret remains. */
export function maskText(secrets: readonly string[], text: string): string {
  // Whole secrets first: the part of one form of a secret may be inside another form of it.
  const whole = secrets.reduce((all, secret) => all.replaceAll(secret, "*".repeat(secret.length)), text);
  return secrets.reduce((all, secret) => maskStart(maskEnd(all, secret), secret), whole);
}

// Shorter parts would match ordinary text.
const PART_MIN_CHARACTERS = 12;
// A text may be cut at its end, or before the mark with which the service cuts it.
const CUT = /\s*(?:…|\[cut\b|$)/y;

// An engine keeps only the end of a long error, which may start inside a secret: a token ends with its signature.
function maskEnd(text: string, secret: string): string {
  const letters = secret.slice(-PART_MIN_CHARACTERS);
  return maskParts(text, letters, (at) => {
    const rest = secret.length - letters.length;
    let more = 0;
    while (more < Math.min(rest, at) && text[at - more - 1] === secret[rest - more - 1]) more++;
    return [at - more, at + letters.length];
  });
}

// A cut text may end inside a secret. Elsewhere the start of a secret is harmless, because all tokens start alike.
function maskStart(text: string, secret: string): string {
  const letters = secret.slice(0, PART_MIN_CHARACTERS);
  return maskParts(text, letters, (at) => {
    let end = at + letters.length;
    while (end < text.length && text[end] === secret[end - at]) end++;
    CUT.lastIndex = end;
    return [at, CUT.test(text) ? end : at];
  });
}

/** Masks the text around each match of `letters`; `partAt` returns the start and end of the masked part. */
function maskParts(text: string, letters: string, partAt: (at: number) => [number, number]): string {
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
