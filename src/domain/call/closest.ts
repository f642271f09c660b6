const SHOWN_MAX = 3;
// A longer word is never a typo of a name, and comparing it would take long.
const WORD_MAX_CHARACTERS = 100;

/**
 * Returns the names that a misspelled word most likely means, closest first, at most three. A name fits when up to a third
 * of its letters differ, or when the name starts with the word.
 */
export function findClosest(word: string, names: readonly string[]): string[] {
  const wanted = word.toLowerCase();
  if (wanted.length < 2 || wanted.length > WORD_MAX_CHARACTERS) return [];
  const scored = [...new Set(names)].map((name) => ({ name, distance: rate(wanted, name.toLowerCase()) }))
    .filter(({ distance }) => distance !== Infinity)
    .sort((a, b) => a.distance - b.distance);
  const best = scored[0]?.distance;
  return scored.filter(({ distance }) => distance === best).slice(0, SHOWN_MAX).map(({ name }) => name);
}

function rate(word: string, name: string): number {
  if (name.length > WORD_MAX_CHARACTERS) return Infinity;
  if (word.length >= 3 && name.startsWith(word)) return 1;
  const most = Math.max(1, Math.floor(Math.max(word.length, name.length) / 3));
  if (Math.abs(word.length - name.length) > most) return Infinity;
  const distance = countEdits(word, name);
  return distance <= most && distance < name.length ? distance : Infinity;
}

/** Counts the letters to insert, delete, replace or swap with their neighbor. */
function countEdits(one: string, other: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let row = 1; row <= one.length; row++) {
    const current = [row];
    for (let at = 1; at <= other.length; at++) {
      const same = one[row - 1] === other[at - 1];
      const swapped = row > 1 && at > 1 && one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1];
      current[at] = Math.min(
        (previous[at] ?? 0) + 1,
        (current[at - 1] ?? 0) + 1,
        (previous[at - 1] ?? 0) + (same ? 0 : 1),
        swapped ? (before[at - 2] ?? 0) + 1 : Infinity,
      );
    }
    before = previous;
    previous = current;
  }
  return previous[other.length] ?? 0;
}

/** Formats suggestions as a sentence with a leading blank, or as nothing. */
export function formatSuggestion(names: readonly string[]): string {
  return names.length === 0 ? "" : ` Did you mean ${names.join(" or ")}?`;
}
