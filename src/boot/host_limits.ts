import { dirname, join } from "node:path";
import { engineSchema } from "../config/schema.ts";
import type { Machine } from "../engine/engine.ts";
import { IdleProcesses, type KeepAlive } from "../engine/keep_alive.ts";

// Most have 7.6 to 7.8 GiB when they are sold with 8.
const STAYING_MEMORY_BYTES = 8e9;
const MEMORY_EACH_BYTES = 4e9;
const STAYING_MAX = 32;

/** What programs that are started get from this machine. `memoryBytes`: what may be used of its memory, if that is not to be looked up. */
export function machineOf(
  { memoryBytes, ...given }: { umask: number; stopGraceMs: number; memoryBytes?: number | undefined },
): Machine {
  return {
    ...given,
    path: Deno.env.get("PATH") ?? "",
    inherited: Deno.env.toObject(),
    root: Deno.uid() === 0,
    keepAlive: keepAliveIn(memoryBytes ?? usableMemory(Deno.systemMemoryInfo().total)),
  };
}

/** What engines that say nothing keep open, all of them together: one process for each 4 GB, none below 8 GB (contract 19.1). */
export function keepAliveIn(memoryBytes: number): KeepAlive | null {
  if (memoryBytes < STAYING_MEMORY_BYTES) return null;
  const max = Math.min(Math.floor(memoryBytes / MEMORY_EACH_BYTES), STAYING_MAX);
  return { warm: engineSchema.shape.warm.unwrap().parse({ max }), idle: new IdleProcesses(max) };
}

/**
 * How much of `total` this process may use, in bytes: less where its control group says so, as in a container or by systemd. 0 where an
 * open process cannot be watched (contract 19.3). `root`: where the files of the kernel are.
 */
export function usableMemory(total: number, root = "/"): number {
  if (Deno.build.os !== "linux") return 0;
  const groups = textOf(join(root, "proc/self/cgroup")).split("\n");
  return Math.min(total, ...groups.flatMap((line) => limitsOf(line, join(root, "sys/fs/cgroup"))));
}

// "0::/a/b" where one hierarchy has all limits, "5:memory:/a/b" where each has its own.
function limitsOf(line: string, mounted: string): number[] {
  const [, kinds = "", path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
  if (path === undefined || kinds !== "" && !kinds.split(",").includes("memory")) return [];
  const [folder, name] = kinds === ""
    ? [mounted, "memory.max"]
    : [join(mounted, "memory"), "memory.limit_in_bytes"];
  const limits: number[] = [];
  // The limit of each group above holds, too; inside a container only the last one can be seen.
  for (let at = path;; at = dirname(at)) {
    const limit = Number(textOf(join(folder, at, name)));
    if (limit > 0) limits.push(limit);
    if (at === "/") return limits;
  }
}

function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
