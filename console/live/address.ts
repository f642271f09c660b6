import { useLocation, useSearch } from "wouter-preact";

/** The props of a page: the named parts of its address. */
export interface PageProps {
  params: Record<string, string | undefined>;
}

/** Keeps filters and selections in the address, so that a link and a reload show the same rows. */
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
 * Reads the named parts of the address by a pattern such as `/chat/:id?`. The router decodes too little of a conversation key,
 * and more than once.
 */
export function readPathParams(pattern: string): PageProps["params"] {
  const parts = location.pathname.split("/");
  return Object.fromEntries(
    pattern.split("/").flatMap((name, index) =>
      name.startsWith(":") ? [[name.replace(/^:|\?$/g, ""), decode(parts[index])]] : []
    ),
  );
}

function decode(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return part;
  }
}
