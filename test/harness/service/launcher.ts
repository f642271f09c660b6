import { join } from "node:path";
import { type App, type AppOptions, openApp } from "./app.ts";
import { createRemoteWorker, FakeRunner } from "./runner.ts";
import { waitUntil } from "../wait.ts";
import type { Json } from "./client.ts";
import { createTempDir, SVC } from "./process.ts";

const RUNNER = new URL("../../runner/conformance/python_runner.py", import.meta.url).pathname;

/** Engines of a service whose workers run `sh` with the instruction on stdin, on the runners that launchers start. */
export const SH = { default: "sh", sh: { kind: "command", command: "/bin/sh" } };

/**
 * Writes the command of a launcher that starts a real runner as a process in another session, and prints its pid. `before` runs first.
 * Each call appends a line to the file `calls`, and each job to `jobs`.
 */
export async function writeLauncher(folder: string, before = ""): Promise<string> {
  const path = join(folder, `launch-${crypto.randomUUID()}.sh`);
  const text = `#!/bin/sh
echo "$SVC_RUN_ID" >>${folder}/calls
${before}
export SVC_RUNNER_WORK_ROOT=$(mktemp -d ${folder}/job.XXXXXX)
setsid python3 ${RUNNER} </dev/null >>${folder}/runner.log 2>&1 &
echo $! | tee -a ${folder}/jobs
`;
  await Deno.writeTextFile(path, text, { mode: 0o755 });
  return path;
}

/** Writes the command of a launcher whose job is a real `svc runner --once`. The job writes its exit code to the file `codes`. */
export async function writeOnceLauncher(folder: string): Promise<string> {
  const config = join(folder, "runner.yaml");
  await Deno.writeTextFile(config, "engines:\n  default: sh\n  sh: { kind: command, command: sh }\n");
  await Deno.mkdir(join(folder, "tmp"));
  const program = SVC.map((word) => `'${word}'`).join(" ");
  const job = await writeCommand(
    folder,
    `TMPDIR=${folder}/tmp ${program} runner --once -c ${config} 2>>${folder}/runner.log; echo $? >>${folder}/codes`,
  );
  return await writeCommand(
    folder,
    `setsid ${job} </dev/null >/dev/null 2>&1 &\necho $! | tee -a ${folder}/jobs`,
  );
}

/** Writes a command that runs these lines of shell. */
export async function writeCommand(folder: string, lines: string): Promise<string> {
  const path = join(folder, `command-${crypto.randomUUID()}.sh`);
  await Deno.writeTextFile(path, `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  return path;
}

/** A service with launchers in this process, and a folder for their commands. */
export class LaunchWorld implements AsyncDisposable {
  constructor(readonly app: App, readonly folder: string, readonly remove: () => Promise<void>) {}

  /** Creates a worker without a home that runs on launched runners. */
  async createWorker(change: object = {}): Promise<string> {
    return await createRemoteWorker(this.app, "sh", { home: "none", ...change });
  }

  /** Waits until the only open launch is in this state, and returns it. */
  async waitForLaunch(state: string): Promise<{ id: string; job: string }> {
    const find = () =>
      this.app.db.first<{ id: string; job: string }>(
        "select id, job from launch where state = ? order by id desc limit 1",
        [state],
      );
    await waitUntil(`a launch is ${state}`, async () => await find() !== null);
    const found = await find();
    if (found === null) throw new Error(`No launch is ${state}`);
    return found;
  }

  /** Returns a runner that consists of requests, with the token of a launch. */
  async openRunner(launchId: string): Promise<FakeRunner> {
    const token = await Deno.readTextFile(join(this.app.dataDir, "launches", launchId, "token"));
    return new FakeRunner(this.app, token);
  }

  /** Waits until the reason of a task matches. */
  async waitForReason(task: string, reason: RegExp): Promise<Json> {
    let last: Json = null;
    await waitUntil(`the task says ${reason}`, async () => {
      last = await this.app.call(`GET /api/tasks/${task}`);
      return reason.test(last.reason);
    }).catch((error) => {
      throw new Error(`${error.message}; it says ${JSON.stringify(last?.reason)}`);
    });
    return last;
  }

  /** Reads a file that the commands write, by line. */
  async read(name: string): Promise<string[]> {
    return await readLines(join(this.folder, name));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.app[Symbol.asyncDispose]();
    for (const pid of await this.read("jobs")) endJob(Number(pid));
    await this.remove();
  }
}

export async function readLines(path: string): Promise<string[]> {
  const text = await Deno.readTextFile(path).catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Ends a job and its processes. */
export function endJob(pid: number): void {
  try {
    Deno.kill(-pid, "SIGKILL");
  } catch {
    // The job has ended.
  }
}

/** Opens a service with the launchers that `build` returns for a folder. All have the label `x`. */
export async function openLaunchWorld(
  build: (folder: string) => Promise<Record<string, object>>,
  options: AppOptions = {},
): Promise<LaunchWorld> {
  const folder = await createTempDir();
  const built = await build(folder.path);
  const launchers = Object.fromEntries(
    Object.entries(built).map(([name, one]) => [name, { labels: ["x"], command: ["false"], ...one }]),
  );
  const config = { engines: SH, launchers, ...options.config };
  const app = await openApp({ ...options, config });
  return new LaunchWorld(app, folder.path, async () => await folder[Symbol.asyncDispose]());
}
