// Limits the memory, processes and processors of boxes by control groups (version 2), where systemd delegates them to the service.
import { join } from "node:path";
import type { BoxLimits } from "../../domain/workers/isolation.ts";

let delegated: { group: string | null } | null = null;

/** Returns findDelegatedGroup() of this process, which systemd does not change while it runs. */
export function getDelegatedGroup(): string | null {
  delegated ??= { group: findDelegatedGroup() };
  return delegated.group;
}

const CONTROLLERS = "+memory +pids +cpu";
const CPU_PERIOD_US = 100_000;

/** Returns the control group of this process if the service may create groups below it, or null. `root` has the kernel's files. */
export function findDelegatedGroup(root = "/"): string | null {
  try {
    const path = /^0::(\/.*)$/m.exec(Deno.readTextFileSync(join(root, "proc/self/cgroup")))?.[1];
    if (path === undefined) return null;
    // After the first box, the service is in the group `service` below this one.
    const group = join(root, "sys/fs/cgroup", path.replace(/\/service$/, ""));
    const available = Deno.readTextFileSync(join(group, "cgroup.controllers")).split(/\s+/);
    if (!["memory", "pids", "cpu"].every((name) => available.includes(name))) return null;
    // Of a group that is not delegated, these files belong to root and are read-only.
    Deno.openSync(join(group, "cgroup.subtree_control"), { write: true }).close();
    return group;
  } catch {
    return null;
  }
}

/** Creates the control group of a box in the service's delegated group. Throws file system errors. */
export function createBoxGroup(group: string, id: string, limits: BoxLimits, total: BoxLimits): string {
  const all = join(group, "boxes");
  const own = join(all, id);
  moveProcesses(group, join(group, "service"));
  Deno.writeTextFileSync(join(group, "cgroup.subtree_control"), CONTROLLERS);
  Deno.mkdirSync(all, { recursive: true });
  writeLimits(all, total);
  Deno.writeTextFileSync(join(all, "cgroup.subtree_control"), CONTROLLERS);
  Deno.mkdirSync(own);
  writeLimits(own, limits);
  return own;
}

// The kernel gives limits only to groups whose parent has no processes.
function moveProcesses(from: string, to: string): void {
  Deno.mkdirSync(to, { recursive: true });
  for (
    const pid of Deno.readTextFileSync(join(from, "cgroup.procs")).split("\n").filter((line) => line !== "")
  ) {
    try {
      Deno.writeTextFileSync(join(to, "cgroup.procs"), pid);
    } catch (error) {
      // The process has ended.
      if (!(error instanceof Error) || !/os error 3\b/.test(error.message)) throw error;
    }
  }
}

function writeLimits(group: string, { memory = "max", pids, cpu }: BoxLimits): void {
  const quota = cpu === undefined ? "max" : Math.round(cpu * CPU_PERIOD_US);
  Deno.writeTextFileSync(join(group, "memory.max"), memory);
  Deno.writeTextFileSync(join(group, "pids.max"), `${pids ?? "max"}`);
  Deno.writeTextFileSync(join(group, "cpu.max"), `${quota} ${CPU_PERIOD_US}`);
}
