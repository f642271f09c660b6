import { useState } from "preact/hooks";

/** The selected rows of a table, by their ids. */
export interface Selection {
  ids: ReadonlySet<string>;
  set: (ids: readonly string[]) => void;
  add: (id: string) => void;
  toggle: (id: string) => void;
  clear: () => void;
}

/** Keeps a selection. A row that leaves the list also leaves the selection. */
export function useSelection(items: readonly { id: string }[] | undefined): Selection {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const ids = chosen.size === 0
    ? chosen
    : new Set((items ?? []).flatMap(({ id }) => chosen.has(id) ? [id] : []));
  return {
    ids,
    set: (next) => setChosen(new Set(next)),
    add: (id) => setChosen((before) => new Set([...before, id])),
    toggle: (id) =>
      setChosen((before) => {
        const next = new Set(before);
        if (!next.delete(id)) next.add(id);
        return next;
      }),
    clear: () => setChosen(new Set()),
  };
}
