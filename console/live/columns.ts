import { signal } from "@preact/signals";

const HIDDEN = "svc.columns";

/** The columns that this browser hides, as `table.column`. */
export const hiddenColumns = signal<ReadonlySet<string>>(
  new Set((localStorage.getItem(HIDDEN) ?? "").split(" ")),
);

export function toggleColumn(name: string): void {
  const next = new Set(hiddenColumns.value);
  if (!next.delete(name)) next.add(name);
  hiddenColumns.value = next;
  localStorage.setItem(HIDDEN, [...next].join(" "));
}
