/**
 * Imports a module that only some commands need. Deno loads every import that it finds in the source, even unused ones. This
 * function hides the path, so that `ctl` does not load the server. The build passes the same paths to `deno compile
 * --include`; the house tests find them by this function's name.
 */
export function load<T>(path: string, from: string): Promise<T> {
  return import(new URL(path, from).href);
}
