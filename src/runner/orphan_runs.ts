import { join } from "node:path";
import { removeTree } from "../base/files/tree_removal.ts";
import { createLogger } from "../base/log.ts";
import { type DataPaths, getEventsPath, getHomeDir, getLogPath } from "../base/paths.ts";
import { signal, sweep } from "../engine/process/isolation.ts";

const log = createLogger("runner");

/** A started run: its SVC_RUN_ID, and its process groups with the start times of their leaders. */
interface OrphanRun {
  runId: string;
  groups: { pid: number; since: string }[];
}

/** Returns the directory for the files of a run's message (contract 18.6). */
export function resolveFiles(paths: DataPaths, executionId: string): string {
  return join(paths.root, "files", executionId);
}

/** Records the unfinished runs of this machine in one small file each, so that a crashed runner leaves no process and no copy. */
export class OrphanRuns {
  readonly #folder: string;
  readonly #paths: DataPaths;
  readonly #marks: boolean;
  readonly #removals = new Set<Promise<void>>();

  /** `marks`: whether this system shows SVC_RUN_ID of a process. If not, process groups are recorded. */
  constructor(paths: DataPaths, marks = Deno.build.os === "linux") {
    this.#folder = join(paths.root, "open");
    this.#paths = paths;
    this.#marks = marks;
  }

  /** Records a run before it starts. */
  record(executionId: string, runId: string): void {
    Deno.mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    Deno.writeTextFileSync(join(this.#folder, executionId), `${runId}\n`, { mode: 0o600 });
  }

  /** Records a process of a run, which leads a group. */
  recordProcess(executionId: string, pid: number): void {
    if (this.#marks) return;
    try {
      Deno.writeTextFileSync(join(this.#folder, executionId), `${pid} ${readStartTime(pid)}\n`, {
        append: true,
      });
    } catch (error) {
      // The run continues: this runner still supervises the process.
      log.warning("Cannot record process {pid} of run {id}: {error}", { pid, id: executionId, error });
    }
  }

  /** Removes the record, logs and files of a run whose end the service has stored, and the directory that only it had. */
  remove(executionId: string): void {
    remove(getLogPath(this.#paths, executionId));
    remove(getEventsPath(this.#paths, executionId));
    this.#removeTree(resolveFiles(this.#paths, executionId));
    this.#removeTree(getHomeDir(this.#paths, executionId));
    this.#removeTree(join(this.#paths.trees, executionId));
    remove(join(this.#folder, executionId));
  }

  /** Resolves when everything has been removed that remove() was called for. */
  async settle(): Promise<void> {
    while (this.#removals.size > 0) await Promise.all(this.#removals);
  }

  // Not awaited: an agent may have left millions of files.
  #removeTree(path: string): void {
    const removal = removeTree({ root: this.#paths.root, path }).catch((error) => {
      log.warning("Cannot remove {path}: {error}", { path, error });
    }).finally(() => this.#removals.delete(removal));
    this.#removals.add(removal);
  }

  /** Ends every process of the runs that an earlier runner left, and removes their files (contract 18.7). */
  async endAll(): Promise<void> {
    const found = this.#read();
    if (found.size > 0) await this.#endRuns(found);
    // The process may have ended while it removed them.
    for (const folder of [this.#paths.homes, this.#paths.trees]) {
      for (const name of listNames(folder)) this.#removeTree(join(folder, name));
    }
  }

  async #endRuns(found: ReadonlyMap<string, OrphanRun>): Promise<void> {
    const runs = [...found.values()];
    if (this.#marks) {
      const ended = await sweep(new Set(runs.map(({ runId }) => runId)));
      log.warning(
        "{runs} runs were left by the previous runner; {ended} of their processes were still running",
        {
          runs: found.size,
          ended,
        },
      );
    } else {
      log.warning(
        "{runs} runs were left by the previous runner; {ended} of their process groups were killed. Processes outside these " +
          "groups cannot be found on this system: look for them yourself",
        { runs: found.size, ended: runs.flatMap(({ groups }) => groups).filter(endGroup).length },
      );
    }
    for (const executionId of found.keys()) this.remove(executionId);
  }

  #read(): Map<string, OrphanRun> {
    const found = new Map<string, OrphanRun>();
    for (const name of listNames(this.#folder)) {
      const [runId = "", ...lines] = Deno.readTextFileSync(join(this.#folder, name)).trim().split("\n");
      const groups = lines.map((line) => {
        const [pid = "", ...since] = line.split(" ");
        return { pid: Number(pid), since: since.join(" ") };
      });
      found.set(name, { runId, groups });
    }
    return found;
  }
}

function listNames(folder: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    return [];
  }
}

// Ignores a pid that another process got meanwhile. The system does not reuse the pid of a group that still has processes.
function endGroup({ pid, since }: { pid: number; since: string }): boolean {
  if (!Number.isInteger(pid) || pid <= 1) return false;
  const now = readStartTime(pid);
  if (now !== "" && now !== since) return false;
  signal(-pid, "SIGKILL");
  return true;
}

/** Returns the start time of a process as stable text, or "" when it does not exist. */
function readStartTime(pid: number): string {
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
    Deno.removeSync(path);
  } catch {
    // The file is already gone.
  }
}
