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

const READY_MAX = 4;
// Making one shall not slow down the run that has just begun.
const REFILL_AFTER_MS = 5;
// The shell reads its order byte by byte, because what comes behind it is for the program.
const ORDER_MAX_BYTES = 8_192;
const NAME = /^[A-Za-z_]\w*$/;
// Some shells let nobody set these.
const READ_ONLY = ["UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO", ORDER_NEWLINE];

let ready: Deno.ChildProcess[] = [];
let refilling = false;

/**
 * Starts a program in a namespace that was made before and waits for it, and has others made (decision 0094). Those that wait know
 * nothing of any run, and end with this process. Returns null when none is ready, or none can start this: then it has to be started
 * in one of its own.
 */
export function startReserved(program: Program): Deno.ChildProcess | null {
  refill();
  const order = orderOf(program);
  const child = order === null ? undefined : ready.shift();
  if (child === undefined || order === null) return null;
  child.ref();
  const writer = child.stdin.getWriter();
  void writer.write(order).catch(() => {});
  writer.releaseLock();
  return child;
}

function refill(): void {
  if (refilling) return;
  refilling = true;
  setTimeout(() => {
    refilling = false;
    if (ready.length >= READY_MAX || !add()) return;
    refill();
  }, REFILL_AFTER_MS);
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
