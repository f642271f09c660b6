import type { RunnerRow } from "../store/runner.ts";

/** A runner with what its texts say. */
export interface KnownRunner {
  row: RunnerRow;
  labels: ReadonlySet<string>;
  engines: ReadonlySet<string>;
  /** Those of them that are inside its process. */
  inside: ReadonlySet<string>;
}

/** These runners; many say the same, and each text is read once. */
export function known(rows: readonly RunnerRow[]): KnownRunner[] {
  const labels = onceFor((text) => new Set(JSON.parse(text) as string[]));
  const engines = onceFor((text) => {
    const all = JSON.parse(text) as { name: string; external: boolean }[];
    const inside = all.filter(({ external }) => !external);
    return { engines: namesOf(all), inside: namesOf(inside) };
  });
  return rows.map((row) => ({ row, labels: labels(row.labels), ...engines(row.engines) }));
}

function namesOf(engines: readonly { name: string }[]): Set<string> {
  return new Set(engines.map(({ name }) => name));
}

function onceFor<T>(read: (text: string) => T): (text: string) => T {
  const before = new Map<string, T>();
  return (text) => {
    const found = before.get(text);
    if (found !== undefined) return found;
    const made = read(text);
    before.set(text, made);
    return made;
  };
}
