/** A name in the form in which names are compared: without case, and with accents encoded in one way. */
export function nameKey(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
