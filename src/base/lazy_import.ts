/**
 * Imports a module of ours that only some commands need. Deno loads every import that it sees in the source, even one that
 * never runs; behind this function the server costs `ctl` nothing. `deno compile` gets the same paths by --include, and
 * the house tests find them by the name of this function.
 */
export function load<T>(path: string, from: string): Promise<T> {
  return import(new URL(path, from).href);
}
