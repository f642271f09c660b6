import { logger } from "../base/log.ts";

const log = logger("engine");

/**
 * How a run's processes are held together. `namespace`: they live in a pid namespace that the kernel ends with
 * its first process, escapees too, even when the server is killed. `group`: a process group, and a search for
 * the run's marker, which a process that clears its environment escapes.
 */
export type Isolation = "namespace" | "group";

// When memory runs out the kernel ends agents before it ends the service (reliability CHD-13).
const FIRST_TO_GO = "{ echo 500 >/proc/self/oom_score_adj; } 2>/dev/null; ";
// The shell is process 1 of the namespace: it reaps orphans, ignores INT and TERM like every process 1,
// and hands on the exit code. Its end is the end of all others.
const FIRST_PROCESS = FIRST_TO_GO + 'umask "$0"; "$@"; exit $?';
const LEADER = FIRST_TO_GO + 'umask "$0"; exec "$@"';
// Without a namespace a child of the program watches over it. The kernel signals it when the program ends, which ends with
// the server, and it ends whatever the program has left: no agent works on without us. It does not hear what the
// program is told, and does not hold its output open.
const WATCHED_LEADER = FIRST_TO_GO +
  'umask "$0"; "$1" --pdeathsig USR1 -- /bin/sh -c "$2" </dev/null >/dev/null 2>&1 & shift 2; exec "$@"';
// It looks at all processes with one grep, so that it is done before a machine under load notices, and looks again
// until it has found no process twice: a killed process may have started another one meanwhile.
const WATCH = `end() {
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
trap end USR1
sleep 2147483647 &
wait`;

/** How a program is started under an isolation. */
export interface Launch {
  command: string;
  args: string[];
  /** Whether Deno has to make the new session; where `setsid` does it this is false. */
  detached: boolean;
}

/** The launch of `command` under this isolation, in a session of its own, with this file mode mask. */
export function isolated(isolation: Isolation, umask: number, command: string, args: string[]): Launch {
  const mask = umask.toString(8).padStart(4, "0");
  const leader = isolation === "group"
    ? group(mask, command, args)
    : [...namespace(), "/bin/sh", "-c", FIRST_PROCESS, mask, command, ...args];
  const [first = "", ...rest] = leader;
  // Deno's own way to start a new session forks this process, which takes ten milliseconds and stops everything
  // else meanwhile; the small program does it in a third of one.
  const setsid = tool("setsid");
  return setsid === null
    ? { command: first, args: rest, detached: true }
    : { command: setsid, args: leader, detached: false };
}

function group(mask: string, command: string, args: string[]): string[] {
  const setpriv = Deno.build.os === "linux" ? tool("setpriv") : null;
  if (setpriv === null) return ["/bin/sh", "-c", LEADER, mask, command, ...args];
  const watched = ["/bin/sh", "-c", WATCHED_LEADER, mask, setpriv, WATCH, command, ...args];
  return [setpriv, "--pdeathsig", "KILL", "--", ...watched];
}

function namespace(): string[] {
  return [
    tool("setpriv") ?? "setpriv",
    "--pdeathsig",
    "SIGKILL",
    "--",
    tool("unshare") ?? "unshare",
    // As root no user namespace is needed, and without one file owners and sudo stay what they are.
    ...(Deno.uid() === 0 ? [] : ["--user", "--map-current-user"]),
    "--pid",
    "--fork",
    "--kill-child=SIGKILL",
    "--mount-proc",
    "--",
  ];
}

const tools = new Map<string, string | null>();

/** Where a small program of the system is, or null. Looked for once, on our own PATH and never on an agent's. */
function tool(name: string): string | null {
  const known = tools.get(name);
  if (known !== undefined) return known;
  const folders = [...(Deno.env.get("PATH") ?? "").split(":"), "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
  const found =
    folders.filter((folder) => folder.startsWith("/")).map((folder) => `${folder}/${name}`).find((path) => {
      try {
        return Deno.statSync(path).isFile;
      } catch {
        return false;
      }
    }) ?? null;
  tools.set(name, found);
  return found;
}

let known: Promise<Isolation> | null = null;

/** The best isolation that this machine allows; tried once, by starting something under it. */
export function detectIsolation(): Promise<Isolation> {
  known ??= tryNamespace();
  return known;
}

async function tryNamespace(): Promise<Isolation> {
  if (Deno.build.os !== "linux") return "group";
  const launch = isolated("namespace", 0o022, "/bin/sh", ["-c", "exit 7"]);
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

/** Pids whose environment holds `SVC_RUN_ID=<one of the ids>`, without this process itself. Linux only, else none. */
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
      // It ended meanwhile, or belongs to another user.
    }
  }
  return found;
}

/** Sends a signal, without an error when the process has ended. */
export function signal(pid: number, name: Deno.Signal): void {
  try {
    Deno.kill(pid, name);
  } catch {
    // Gone already.
  }
}

const SWEEP_PAUSE_MS = 50;
const SWEEP_PASSES_MAX = 100;

/** Kills everything that carries one of the marks, again and again until two passes in a row find nothing. */
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
