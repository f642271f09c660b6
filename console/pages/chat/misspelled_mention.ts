const WORD = /(?:^|\s)@([\p{L}\d][\p{L}\d_-]*)/gu;
const CODE_AND_QUOTES = /```[\s\S]*?(```|(?![\s\S]))|`[^`\n]*`|^\s*>.*$/gm;
// More wrong letters make another word.
const DISTANCE_MAX = 2;

/** A mention of no worker that is close to the name of one. */
interface Misspelled {
  word: string;
  meant: string;
}

/** Finds a mention with a typing error. The service would give such a message to no worker. */
export function findMisspelledMention(text: string, names: readonly string[]): Misspelled | null {
  const shown = text.replace(CODE_AND_QUOTES, " ");
  for (const [, word = ""] of shown.matchAll(WORD)) {
    const typed = word.toLowerCase();
    // The name may have several words, of which this is the first.
    if (names.some((name) => name.toLowerCase().startsWith(typed))) continue;
    if (names.some((name) => typed.startsWith(name.toLowerCase()))) continue;
    const close = names.map((name) => ({ name, distance: measureDistance(typed, name.toLowerCase()) }))
      .filter(({ name, distance }) => distance <= Math.min(DISTANCE_MAX, Math.floor(name.length / 3)))
      .sort((one, other) => one.distance - other.distance)[0];
    if (close !== undefined) return { word, meant: close.name };
  }
  return null;
}

/** Counts the letters to insert, delete, replace or swap with the next one. */
function measureDistance(one: string, other: string): number {
  const rows = [Array.from({ length: other.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= one.length; i++) {
    const [above = [], row] = [rows[i - 1], [i]];
    for (let j = 1; j <= other.length; j++) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1;
      const swapped = one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
        ? (rows[i - 2]?.[j - 2] ?? Infinity) + 1
        : Infinity;
      row.push(Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (above[j - 1] ?? 0) + same, swapped));
    }
    rows.push(row);
  }
  return rows[one.length]?.[other.length] ?? Infinity;
}
