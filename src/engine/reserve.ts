import { shellWord } from "../base/shell.ts";
import { ORDER_NEWLINE, waitingNamespace } from "./isolation.ts";

/** What is to be started: an absolute program in a directory, with exactly this environment. */
interface Program {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  umask: number;
}

const READY_MAX = 2;
// Making one shall not slow down the run that has just begun; but where none is left, the next one may come at once.
const REFILL_AFTER_MS = 50;
const EMPTY_AFTER_MS = 5;
// The shell reads its order byte by byte, because what comes behind it is for the program.
const ORDER_MAX_BYTES = 8_192;
const NAME = /^[A-Za-z_]\w*$/;
// Some shells let nobody set these.
const READ_ONLY = ["UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO", ORDER_NEWLINE];

let ready: Deno.ChildProcess[] = [];
let refill: { at: number; timer?: ReturnType<typeof setTimeout> } = { at: Infinity };

/**
 * Starts a program in a namespace that was made before and waits for it, and has others made. Those that wait know
 * nothing of any run, and end with this process. Returns null when none is ready, or none can start this: then it has to be started
 * in one of its own.
 */
export function startReserved(program: Program): Deno.ChildProcess | null {
  const order = orderOf(program);
  const child = order === null ? undefined : ready.shift();
  refillSoon();
  if (child === undefined || order === null) return null;
  child.ref();
  const writer = child.stdin.getWriter();
  void writer.write(order).catch(() => {});
  writer.releaseLock();
  return child;
}

function refillSoon(): void {
  const afterMs = ready.length === 0 ? EMPTY_AFTER_MS : REFILL_AFTER_MS;
  const at = performance.now() + afterMs;
  if (at >= refill.at) return;
  clearTimeout(refill.timer);
  const timer = setTimeout(() => {
    refill.at = Infinity;
    if (ready.length < READY_MAX && add()) refillSoon();
  }, afterMs);
  refill = { at, timer };
}

function add(): boolean {
  const launch = waitingNamespace();
  if (launch === null) return false;
  try {
    const { command, args } = launch;
    const child = new Deno.Command(command, {
      args,
      cwd: "/",
      env: {},
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    child.unref();
    void child.status.then(() => ready = ready.filter((one) => one !== child));
    ready.push(child);
    return true;
  } catch {
    // The next run makes its own, and says why that fails.
    return false;
  }
}

/** The line that makes the shell of a waiting namespace start it, or null when a line cannot say that. */
function orderOf({ command, args, cwd, env, umask }: Program): Uint8Array | null {
  const names = Object.keys(env);
  if (names.some((name) => !NAME.test(name) || READ_ONLY.includes(name))) return null;
  const settings = names.map((name) => `export ${name}=${shellWord(env[name] ?? "")}`);
  const words = [command, ...args].map(shellWord).join(" ");
  const steps = [`umask ${umask.toString(8)}`, `cd ${shellWord(cwd)}`, "unset OLDPWD", ...settings, words];
  const order = steps.join(" && ").replaceAll("\n", `'"$${ORDER_NEWLINE}"'`);
  const bytes = new TextEncoder().encode(`${order}\n`);
  return bytes.length > ORDER_MAX_BYTES || bytes.includes(0) ? null : bytes;
}
