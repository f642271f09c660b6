import { quoteShellWord } from "../../base/shell.ts";
import { buildWaitingLaunch, ORDER_NEWLINE } from "./isolation.ts";
import { readMounts } from "./mounts.ts";

/** A program with its absolute path, its directory and its whole environment. */
export interface Program {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  umask: number;
}

const READY_MAX = 2;
// Creating a namespace should not slow down the run that has just started. When the pool is empty, it is filled sooner.
const REFILL_AFTER_MS = 50;
const EMPTY_AFTER_MS = 5;
// The shell reads its order byte by byte, because the program's stdin follows it.
const ORDER_MAX_BYTES = 32_768;
const NAME = /^[A-Za-z_]\w*$/;
// A shell may refuse to set these.
const READ_ONLY = ["UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO", ORDER_NEWLINE];

interface Waiting {
  child: Deno.ChildProcess;
  /** The mounts of this process, read before the namespace copied them. */
  mounts: string;
}

let ready: Waiting[] = [];
let refill: { at: number; timer?: ReturnType<typeof setTimeout> } = { at: Infinity };

/**
 * Starts a program in a namespace that was created before, and has the next one created (decision 0019). A waiting namespace has no
 * token and no environment of a run, and ends with this process. A later mount does not appear in it, so a change of the mounts ends it.
 * Returns null when none is ready or an order cannot describe the program: then the caller starts it in a new namespace.
 */
export function startInPool(program: Program): Deno.ChildProcess | null {
  const order = buildOrder(program);
  const child = order === null ? undefined : takeCurrent();
  scheduleRefill();
  if (child === undefined || order === null) return null;
  child.ref();
  const writer = child.stdin.getWriter();
  void writer.write(order).catch(() => {});
  writer.releaseLock();
  return child;
}

function takeCurrent(): Deno.ChildProcess | undefined {
  if (ready.length === 0) return undefined;
  const mounts = readMounts();
  // The shell that waits in a namespace ends when its stdin closes.
  for (const { child } of ready.filter((one) => one.mounts !== mounts)) {
    void child.stdin.close().catch(() => {});
  }
  ready = ready.filter((one) => one.mounts === mounts);
  return ready.shift()?.child;
}

function scheduleRefill(): void {
  const afterMs = ready.length === 0 ? EMPTY_AFTER_MS : REFILL_AFTER_MS;
  const at = performance.now() + afterMs;
  if (at >= refill.at) return;
  clearTimeout(refill.timer);
  const timer = setTimeout(() => {
    refill.at = Infinity;
    if (ready.length < READY_MAX && addNamespace()) scheduleRefill();
  }, afterMs);
  refill = { at, timer };
}

function addNamespace(): boolean {
  const launch = buildWaitingLaunch();
  if (launch === null) return false;
  try {
    const { command, args } = launch;
    const mounts = readMounts();
    const pipes = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
    const child = new Deno.Command(command, { args, cwd: "/", env: {}, clearEnv: true, ...pipes }).spawn();
    child.unref();
    void child.status.then(() => ready = ready.filter((one) => one.child !== child));
    ready.push({ child, mounts });
    return true;
  } catch {
    // The next run starts in a new namespace and reports the error.
    return false;
  }
}

/** Builds the line from which the shell of a waiting namespace starts the program. Returns null when a line cannot describe it. */
function buildOrder({ command, args, cwd, env, umask }: Program): Uint8Array | null {
  const names = Object.keys(env);
  if (names.some((name) => !NAME.test(name) || READ_ONLY.includes(name))) return null;
  const settings = names.map((name) => `export ${name}=${quoteShellWord(env[name] ?? "")}`);
  const words = [command, ...args].map(quoteShellWord).join(" ");
  const steps = [
    `umask ${umask.toString(8)}`,
    `cd ${quoteShellWord(cwd)}`,
    "unset OLDPWD",
    ...settings,
    words,
  ];
  const order = steps.join(" && ").replaceAll("\n", `'"$${ORDER_NEWLINE}"'`);
  const bytes = new TextEncoder().encode(`${order}\n`);
  return bytes.length > ORDER_MAX_BYTES || bytes.includes(0) ? null : bytes;
}
