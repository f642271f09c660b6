/** Returns a name in its form for comparison: lower case, accents composed. */
export function normalizeName(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
