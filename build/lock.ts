import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the project. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url)).replace(/\/$/, "");

/** A package as deno.lock pins it. */
export interface Locked {
  name: string;
  version: string;
  /** Subresource integrity of its tarball, as the registry gave it. */
  integrity: string;
}

/** Every package in a deno.lock, by name; there may be several versions of one. */
export async function readLock(file: string = join(ROOT, "deno.lock")): Promise<Map<string, Locked[]>> {
  const lock = JSON.parse(await Deno.readTextFile(file)) as { npm?: Record<string, { integrity?: string }> };
  const packages = new Map<string, Locked[]>();
  for (const [key, { integrity = "" }] of Object.entries(lock.npm ?? {})) {
    // After an underscore come the peers that this copy was resolved with.
    const [, name = "", version = ""] = /^(@?[^@]+)@([^_]+)/.exec(key) ?? [];
    packages.set(name, [...packages.get(name) ?? [], { name, version, integrity }]);
  }
  return packages;
}
