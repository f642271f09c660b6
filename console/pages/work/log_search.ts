import { useEffect, useRef, useState } from "preact/hooks";
import { bareText } from "../../parts/ansi_line.tsx";

// A page moves smoothly while it searches: after so long it lets others have their turn.
const SLICE_MS = 8;
const LOOK_AT_CLOCK_EACH = 64;

interface Search {
  wanted: string;
  /** Lines before it were searched, and do not change any more. */
  at: number;
  found: number[];
}

/** The lines that have `wanted` in them, whatever its case. A long log is searched in slices, a live one goes on where it was. */
export function useHits(lines: readonly string[], wanted: string): readonly number[] {
  const [hits, setHits] = useState<readonly number[]>([]);
  const search = useRef<Search>({ wanted: "", at: 0, found: [] });
  useEffect(() => {
    const small = wanted.toLowerCase();
    if (search.current.wanted !== small || search.current.at > lines.length) {
      search.current = { wanted: small, at: 0, found: [] };
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    function slice(): void {
      const until = performance.now() + SLICE_MS;
      const { found } = search.current;
      const last = lines.length - 1;
      let at = search.current.at;
      for (; at < last && small !== ""; at++) {
        if (at % LOOK_AT_CLOCK_EACH === 0 && performance.now() > until) break;
        if (has(lines[at] ?? "", small)) found.push(at);
      }
      search.current.at = at;
      if (small !== "" && at < last) {
        timer = setTimeout(slice);
        return;
      }
      // The last line of a live log may go on.
      const end = small !== "" && has(lines[last] ?? "", small) ? [last] : [];
      setHits([...found, ...end]);
    }
    slice();
    return () => clearTimeout(timer);
  }, [lines, wanted]);
  return hits;
}

function has(line: string, small: string): boolean {
  const text = line.includes("\x1b") || line.includes("\r") ? bareText(line) : line;
  return text.toLowerCase().includes(small);
}
