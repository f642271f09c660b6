import { useLocation, useSearch } from "wouter-preact";

/** A filter or a selection that stands in the address, so that a link or a reload shows the same. */
export function useAddress<const Name extends string>(
  ...names: Name[]
): [Record<Name, string>, (change: Partial<Record<Name, string>>) => void] {
  const search = new URLSearchParams(useSearch());
  const [path, navigate] = useLocation();
  const values = Object.fromEntries(names.map((name) => [name, search.get(name) ?? ""])) as Record<
    Name,
    string
  >;
  function change(next: Partial<Record<Name, string>>): void {
    const changed = new URLSearchParams(search);
    for (const [name, value] of Object.entries<string | undefined>(next)) {
      if (value === undefined || value === "") changed.delete(name);
      else changed.set(name, value);
    }
    const text = changed.toString();
    navigate(text === "" ? path : `${path}?${text}`, { replace: true });
  }
  return [values, change];
}

/**
 * The named parts of the address by a pattern such as `/chat/:id?`, decoded once. The router decodes less than what a key of a
 * conversation is written with, and more than once.
 */
export function partsOf(pattern: string): Record<string, string | undefined> {
  const parts = location.pathname.split("/");
  return Object.fromEntries(
    pattern.split("/").flatMap((name, index) =>
      name.startsWith(":") ? [[name.replace(/^:|\?$/g, ""), decoded(parts[index])]] : []
    ),
  );
}

function decoded(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Only those filters that are set, as a query takes them. */
export function filtersOf<T extends Record<string, string>>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "")) as Partial<T>;
}
