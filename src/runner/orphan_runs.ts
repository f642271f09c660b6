import { join } from "node:path";
import { logger } from "../base/log.ts";
import { type DataPaths, eventsPath, logPath } from "../base/paths.ts";
import { signal, sweep } from "../engine/process/isolation.ts";

const log = logger("runner");

/** A run that was begun: its mark, and each process group that it started, with when its first process began. */
interface Begun {
  runId: string;
  groups: { pid: number; since: string }[];
}

/** Where the files of the message of a run are (contract 18.6). */
export function filesOf(paths: DataPaths, executionId: string): string {
  return join(paths.root, "files", executionId);
}

/** Which runs this machine has begun and not ended: one small file each, so that a runner that died leaves no process and no copy behind. */
export class Leftovers {
  readonly #folder: string;
  readonly #paths: DataPaths;
  readonly #marks: boolean;

  /** `marks`: whether the marks of processes can be read here; where they cannot, process groups are noted. */
  constructor(paths: DataPaths, marks = Deno.build.os === "linux") {
    this.#folder = join(paths.root, "open");
    this.#paths = paths;
    this.#marks = marks;
  }

  /** Before a run begins. */
  begin(executionId: string, runId: string): void {
    Deno.mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    Deno.writeTextFileSync(join(this.#folder, executionId), `${runId}\n`, { mode: 0o600 });
  }

  /** When it has started a process, which leads a group. */
  started(executionId: string, pid: number): void {
    if (this.#marks) return;
    try {
      Deno.writeTextFileSync(join(this.#folder, executionId), `${pid} ${startOf(pid)}\n`, { append: true });
    } catch (error) {
      // It runs already, and is supervised.
      log.warning("Cannot note process {pid} of run {id}: {error}", { pid, id: executionId, error });
    }
  }

  /** After its processes have ended and its end was told: its log and its files are the service's by now. */
  end(executionId: string): void {
    remove(logPath(this.#paths, executionId));
    remove(eventsPath(this.#paths, executionId));
    remove(filesOf(this.#paths, executionId));
    remove(join(this.#folder, executionId));
  }

  /** Ends every process of the runs that a runner before this one has left, and removes what they left (contract 18.7). */
  async sweep(): Promise<void> {
    const found = this.#read();
    if (found.size === 0) return;
    const runs = [...found.values()];
    if (this.#marks) {
      const ended = await sweep(new Set(runs.map(({ runId }) => runId)));
      log.warning("{runs} runs were left by the runner before; {ended} of their processes were still there", {
        runs: found.size,
        ended,
      });
    } else {
      log.warning(
        "{runs} runs were left by the runner before; {ended} of their process groups were told to end. What left its group, or " +
          "began before its group was noted, cannot be found on this system: look for it yourself",
        { runs: found.size, ended: runs.flatMap(({ groups }) => groups).filter(endGroup).length },
      );
    }
    for (const executionId of found.keys()) this.end(executionId);
  }

  #read(): Map<string, Begun> {
    const found = new Map<string, Begun>();
    try {
      for (const { name } of Deno.readDirSync(this.#folder)) {
        const [runId = "", ...lines] = Deno.readTextFileSync(join(this.#folder, name)).trim().split("\n");
        const groups = lines.map((line) => {
          const [pid = "", ...since] = line.split(" ");
          return { pid: Number(pid), since: since.join(" ") };
        });
        found.set(name, { runId, groups });
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    return found;
  }
}

// A number that was given to another process meanwhile is not touched. As long as a group has a process, its number is not given anew.
function endGroup({ pid, since }: { pid: number; since: string }): boolean {
  if (!Number.isInteger(pid) || pid <= 1) return false;
  const now = startOf(pid);
  if (now !== "" && now !== since) return false;
  signal(-pid, "SIGKILL");
  return true;
}

/** When a process began, in words that stay the same; "" when there is none. */
function startOf(pid: number): string {
  try {
    const { stdout } = new Deno.Command("ps", {
      args: ["-o", "lstart=", "-p", `${pid}`],
      env: { LC_ALL: "C", TZ: "UTC" },
      stdin: "null",
      stderr: "null",
    }).outputSync();
    return new TextDecoder().decode(stdout).trim();
  } catch {
    return "";
  }
}

function remove(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch {
    // It is gone already, or was never there.
  }
}
