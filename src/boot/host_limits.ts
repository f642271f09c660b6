import { dirname, join } from "node:path";
import { engineSchema } from "../config/engine.ts";
import type { Config } from "../config/schema.ts";
import { Catalog } from "../engine/catalog.ts";
import type { Machine } from "../engine/engine.ts";
import { IdleProcesses, type KeepAlive } from "../engine/keep_alive.ts";

// Machines sold with 8 GB have 7.6 to 7.8 GiB.
const STAYING_MEMORY_BYTES = 8e9;
const MEMORY_EACH_BYTES = 4e9;
const STAYING_MAX = 32;

/** Creates the engines of this machine. `memoryBytes` replaces the detected memory limit. */
export function createCatalog(
  { default: defaultName, ...configured }: Config["engines"],
  { memoryBytes, ...given }:
    & Pick<Machine, "umask" | "stopGraceMs" | "gateways" | "gatewayKeys" | "describeTools">
    & { memoryBytes?: number | undefined },
): Catalog {
  const memory = memoryBytes ?? findUsableMemory(Deno.systemMemoryInfo().total);
  return new Catalog({ defaultName, configured, defaultsFor: (kind) => engineSchema.parse({ kind }) }, {
    ...given,
    path: Deno.env.get("PATH") ?? "",
    inherited: Deno.env.toObject(),
    root: Deno.uid() === 0,
    keepAlive: buildKeepAlive(memory),
    spare: memory < STAYING_MEMORY_BYTES ? 0 : 1,
  });
}

/** Builds the default limit of idle engine processes: one for each 4 GB, none below 8 GB (contract 19.1). */
export function buildKeepAlive(memoryBytes: number): KeepAlive | null {
  if (memoryBytes < STAYING_MEMORY_BYTES) return null;
  const max = Math.min(Math.floor(memoryBytes / MEMORY_EACH_BYTES), STAYING_MAX);
  return { warm: engineSchema.shape.warm.unwrap().parse({ max }), idle: new IdleProcesses(max) };
}

/**
 * Finds the bytes of `total` that the control groups of this process allow. Returns 0 on systems where open processes cannot be watched
 * (contract 19.3). `root` contains the files of the kernel.
 */
export function findUsableMemory(total: number, root = "/"): number {
  if (Deno.build.os !== "linux") return 0;
  const groups = readText(join(root, "proc/self/cgroup")).split("\n");
  return Math.min(total, ...groups.flatMap((line) => readLimits(line, join(root, "sys/fs/cgroup"))));
}

// cgroup v2: "0::/a/b". cgroup v1: "5:memory:/a/b".
function readLimits(line: string, mounted: string): number[] {
  const [, kinds = "", path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
  if (path === undefined || kinds !== "" && !kinds.split(",").includes("memory")) return [];
  const [folder, name] = kinds === ""
    ? [mounted, "memory.max"]
    : [join(mounted, "memory"), "memory.limit_in_bytes"];
  const limits: number[] = [];
  // The limits of all parent groups apply. A container sees only the root.
  for (let at = path;; at = dirname(at)) {
    const limit = Number(readText(join(folder, at, name)));
    if (limit > 0) limits.push(limit);
    if (at === "/") return limits;
  }
}

function readText(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
