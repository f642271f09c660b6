import { createLogger } from "../../base/log.ts";
import { yieldToLoop } from "../../base/yield_to_loop.ts";

const log = createLogger("engine");
const PIDS_PER_TURN = 200;

/**
 * How the processes of a run are kept together. `namespace`: a pid namespace, whose processes the kernel kills when the first one ends,
 * even after a kill of the server. `group`: a process group, and a search for the run's marker in the environment, which misses processes
 * that clear it.
 */
export type Isolation = "namespace" | "group";

/** Represents a line break in the order to a waiting namespace, which is one line. */
export const ORDER_NEWLINE = "svc_newline";

// When memory runs out, the kernel kills agents before the service (reliability CHD-13). On a busy processor agents yield to the service:
// the kernel weighs a session as a whole, or its processes (decision 0029).
const NICE = 10;
const GIVES_WAY = `{ echo 500 >/proc/self/oom_score_adj; echo ${NICE} >/proc/self/autogroup; } 2>/dev/null; `;
// The shell is process 1 of the namespace: it reaps orphans, ignores INT and TERM as every process 1 does, and returns the exit code.
// When it ends, all others end.
const FIRST_PROCESS = GIVES_WAY + 'umask "$0"; "$@"; exit $?';
const WAITING = GIVES_WAY +
  `IFS= read -r svc_order || exit 0; ${ORDER_NEWLINE}='\n'; eval "$svc_order"; exit $?`;
const LEADER = GIVES_WAY + 'umask "$0"; exec "$@"';
// Without a namespace, a child of the program watches it. The kernel signals this child when the program ends (and the program ends with
// the server); then the child kills every process that the program left. It does not read the program's stdin and does not keep its
// output open. The signal is one that a process without a trap ignores, and the child looks for its parent once it has the trap, because
// a server can be killed before that.
const WATCHED_LEADER = GIVES_WAY +
  'umask "$0"; "$1" --pdeathsig URG -- /bin/sh -c "$2" svc-watch $$ </dev/null >/dev/null 2>&1 & shift 2; exec "$@"';
// A single grep reads all processes, which is fast even under load. The loop ends when two passes find nothing, because a process can
// start another one before it is killed.
const WATCH = `leader=$1
end() {
  clean=0 passes=0
  while [ $clean -lt 2 ] && [ $passes -lt 500 ]; do
    passes=$((passes + 1)) clean=$((clean + 1))
    set -- /proc/[0-9]*/environ
    for file in $(grep -lszx "SVC_RUN_ID=$SVC_RUN_ID" "$@"); do
      pid=\${file#/proc/}
      pid=\${pid%/environ}
      if [ $pid != $$ ]; then clean=0; kill -KILL $pid; fi
    done
  done
  kill -KILL 0
}
trap "" INT TERM HUP
trap end URG
set -- $(cat /proc/$$/stat)
[ "$4" = "$leader" ] || end
sleep 2147483647 &
wait`;

interface Launch {
  command: string;
  args: string[];
  /** Whether Deno has to create the session, because `setsid` is missing. */
  detached: boolean;
}

/** Builds the command that starts `command` in this isolation, in a new session, with this umask. */
export function buildLaunch(isolation: Isolation, umask: number, command: string, args: string[]): Launch {
  const mask = umask.toString(8).padStart(4, "0");
  const leader = isolation === "group"
    ? [...buildNiceArgs(), ...buildGroupArgs(mask, command, args)]
    : [...buildNiceArgs(), ...buildNamespaceArgs(), "/bin/sh", "-c", FIRST_PROCESS, mask, command, ...args];
  const [first = "", ...rest] = leader;
  // To create a session, Deno forks this whole process, which blocks everything for ten milliseconds. `setsid` takes a third of a
  // millisecond.
  const setsid = findTool("setsid");
  return setsid === null
    ? { command: first, args: rest, detached: true }
    : { command: setsid, args: leader, detached: false };
}

/** Builds the command of a namespace that reads on its stdin what it has to start. Returns null without `setsid`. */
export function buildWaitingLaunch(): Launch | null {
  const setsid = findTool("setsid");
  if (setsid === null) return null;
  const args = [...buildNiceArgs(), ...buildNamespaceArgs(), "/bin/sh", "-c", WAITING];
  return { command: setsid, args, detached: false };
}

function buildNiceArgs(): string[] {
  const program = findTool("nice");
  return program === null ? [] : [program, "-n", `${NICE}`];
}

function buildGroupArgs(mask: string, command: string, args: string[]): string[] {
  const setpriv = Deno.build.os === "linux" ? findTool("setpriv") : null;
  if (setpriv === null) return ["/bin/sh", "-c", LEADER, mask, command, ...args];
  const watched = ["/bin/sh", "-c", WATCHED_LEADER, mask, setpriv, WATCH, command, ...args];
  return [setpriv, "--pdeathsig", "KILL", "--", ...watched];
}

function buildNamespaceArgs(): string[] {
  return [
    findTool("setpriv") ?? "setpriv",
    "--pdeathsig",
    "SIGKILL",
    "--",
    findTool("unshare") ?? "unshare",
    // Root needs no user namespace; without one, file owners and sudo work as before.
    ...(Deno.uid() === 0 ? [] : ["--user", "--map-current-user"]),
    "--pid",
    "--fork",
    "--kill-child=SIGKILL",
    "--mount-proc",
    // Disks that are mounted later appear in the namespace, too.
    "--propagation",
    "slave",
    "--",
  ];
}

const tools = new Map<string, string | null>();

/** Finds a small system program, or null. Searches once, on the service's PATH and never on an agent's PATH. */
export function findTool(name: string): string | null {
  const cached = tools.get(name);
  if (cached !== undefined) return cached;
  const folders = [...(Deno.env.get("PATH") ?? "").split(":"), "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
  const paths = folders.filter((folder) => folder.startsWith("/")).map((folder) => `${folder}/${name}`);
  const found = paths.find(isFile) ?? null;
  tools.set(name, found);
  return found;
}

export function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

let detected: Promise<Isolation> | null = null;

/** Finds the best isolation that this machine allows, once, by starting a program in it. */
export function detectIsolation(): Promise<Isolation> {
  detected ??= tryNamespace();
  return detected;
}

async function tryNamespace(): Promise<Isolation> {
  if (Deno.build.os !== "linux") return "group";
  const launch = buildLaunch("namespace", 0o022, "/bin/sh", ["-c", "exit 7"]);
  try {
    const { code } = await new Deno.Command(launch.command, {
      args: launch.args,
      detached: launch.detached,
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    if (code === 7) return "namespace";
    log.debug("No pid namespaces here: the trial ended with {code}", { code });
  } catch (error) {
    log.debug("No pid namespaces here: {error}", { error });
  }
  return "group";
}

/** Finds the pids of processes with `SVC_RUN_ID=<one of the ids>` in their environment, except this process. On Linux only, else none. */
export async function findMarked(runIds: ReadonlySet<string>): Promise<number[]> {
  if (Deno.build.os !== "linux" || runIds.size === 0) return [];
  const found: number[] = [];
  for (const entry of Deno.readDirSync("/proc")) {
    const pid = Number(entry.name);
    if (!Number.isInteger(pid) || pid === Deno.pid) continue;
    try {
      const environment = await Deno.readTextFile(`/proc/${pid}/environ`);
      const marker = /(?:^|\0)SVC_RUN_ID=([^\0]*)/.exec(environment)?.[1];
      if (marker !== undefined && runIds.has(marker)) found.push(pid);
    } catch {
      // The process has ended, or it belongs to another user.
    }
  }
  return found;
}

/**
 * Finds the pids of a run. In a namespace these are all descendants of its first process, which also adopts orphans. Elsewhere they are
 * the processes with the run's marker, see findMarked().
 */
export async function findTree(isolation: Isolation, leader: number, runId: string): Promise<number[]> {
  if (isolation === "group") return await findMarked(new Set([runId]));
  const parents = new Map<number, number>();
  let read = 0;
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    if (++read % PIDS_PER_TURN === 0) await yieldToLoop();
    try {
      // In this file, state and parent follow the name of the program, which may contain any character.
      const [, parent] = Deno.readTextFileSync(`/proc/${name}/stat`).split(") ").at(-1)?.split(" ") ?? [];
      parents.set(Number(name), Number(parent));
    } catch {
      // The process has ended.
    }
  }
  const isIn = (pid: number): boolean => {
    for (let at: number | undefined = pid; at !== undefined && at > 1; at = parents.get(at)) {
      if (at === leader) return true;
    }
    return false;
  };
  return [...parents.keys()].filter(isIn);
}

/** Sends a signal. Does nothing when the process has ended. */
export function signal(pid: number, name: Deno.Signal): void {
  try {
    Deno.kill(pid, name);
  } catch {
    // The process has ended.
  }
}

const SWEEP_PAUSE_MS = 50;
const SWEEP_PASSES_MAX = 100;

/** Kills every process of these runs, until two passes in a row find none. Returns the number of processes. */
export async function sweep(runIds: ReadonlySet<string>): Promise<number> {
  let ended = 0;
  let clean = 0;
  for (let pass = 0; clean < 2 && pass < SWEEP_PASSES_MAX; pass++) {
    const pids = await findMarked(runIds);
    for (const pid of pids) signal(pid, "SIGKILL");
    ended += pids.length;
    clean = pids.length === 0 ? clean + 1 : 0;
    if (clean < 2) {
      await new Promise((resolve) => setTimeout(resolve, pids.length === 0 ? 5 : SWEEP_PAUSE_MS));
    }
  }
  return ended;
}
