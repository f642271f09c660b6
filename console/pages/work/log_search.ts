import { useEffect, useRef, useState } from "preact/hooks";
import { stripCodes } from "../../parts/plain_text.ts";

// A search pauses after this time, so that the page stays responsive.
const SLICE_MS = 8;
const CLOCK_CHECK_LINES = 64;

interface Search {
  query: string;
  /** The index of the next line to search. */
  at: number;
  found: number[];
}

/** Returns the indexes of the lines that contain `query`, ignoring case. Searches a long log in slices. */
export function useMatches(lines: readonly string[], query: string): readonly number[] {
  const [matches, setMatches] = useState<readonly number[]>([]);
  const search = useRef<Search>({ query: "", at: 0, found: [] });
  useEffect(() => {
    const text = query.toLowerCase();
    if (search.current.query !== text || search.current.at > lines.length) {
      search.current = { query: text, at: 0, found: [] };
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    function slice(): void {
      const until = performance.now() + SLICE_MS;
      const { found } = search.current;
      const last = lines.length - 1;
      let at = search.current.at;
      for (; at < last && text !== ""; at++) {
        if (at % CLOCK_CHECK_LINES === 0 && performance.now() > until) break;
        if (includesText(lines[at] ?? "", text)) found.push(at);
      }
      search.current.at = at;
      if (text !== "" && at < last) {
        timer = setTimeout(slice);
        return;
      }
      // The last line of a live log may be incomplete.
      const end = text !== "" && includesText(lines[last] ?? "", text) ? [last] : [];
      setMatches([...found, ...end]);
    }
    slice();
    return () => clearTimeout(timer);
  }, [lines, query]);
  return matches;
}

function includesText(line: string, text: string): boolean {
  const bare = line.includes("\x1b") || line.includes("\r") ? stripCodes(line) : line;
  return bare.toLowerCase().includes(text);
}
