/** Names compare without case and without regard to how accents are encoded. */
export function nameKey(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
