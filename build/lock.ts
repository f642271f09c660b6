import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** A package as deno.lock pins it. */
export interface Locked {
  name: string;
  version: string;
  /** Subresource integrity of the tarball. */
  integrity: string;
}

/** Reads all packages of a deno.lock by name. A name can have several versions. */
export async function readLock(file: string = join(ROOT, "deno.lock")): Promise<Map<string, Locked[]>> {
  const lock = JSON.parse(await Deno.readTextFile(file)) as { npm?: Record<string, { integrity?: string }> };
  const packages = new Map<string, Locked[]>();
  for (const [key, { integrity = "" }] of Object.entries(lock.npm ?? {})) {
    // An underscore separates the resolved peers.
    const [, name = "", version = ""] = /^(@?[^@]+)@([^_]+)/.exec(key) ?? [];
    packages.set(name, [...packages.get(name) ?? [], { name, version, integrity }]);
  }
  return packages;
}
