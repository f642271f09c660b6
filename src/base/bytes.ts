/** The pieces joined; a single piece is returned as it is, not copied. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first = new Uint8Array()] = parts;
  if (parts.length <= 1) return first;
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
