/**
 * Imports a module of ours that only some calls need. Deno reads every import that it can see, even one that never
 * runs: hidden behind this, the server costs `ctl` nothing. `deno compile` gets the same paths by --include, and
 * the rules of the house see them by this function's name.
 */
export function load<T>(path: string, from: string): Promise<T> {
  return import(new URL(path, from).href);
}
