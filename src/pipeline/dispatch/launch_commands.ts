// Builds and runs the commands of launchers for one launch (contract 33).
import { join } from "node:path";
import type { DataPaths } from "../../base/paths.ts";
import { signRunnerToken } from "../../base/token.ts";
import { JOB_MAX_CHARACTERS } from "../../domain/workers/launcher.ts";
import { buildResourceVariables, type Resources } from "../../domain/workers/resources.ts";
import { type LauncherResult, runLauncherProgram } from "../../run/remote/launcher_program.ts";
import { getLaunchRunnerName, type LeftJob, type OpenLaunch } from "../../store/workers/launch.ts";

const LAUNCHER_COMMAND_MAX_MS = 60_000;
const STATE_MAX_CHARACTERS = 100;

interface CommandsOptions {
  paths: DataPaths;
  /** Returns the signing key, which changes at a rotation. */
  key: () => Uint8Array;
  /** The service's address for runners. */
  url: () => string;
}

/** The input of a launcher's command. */
interface LaunchOrder {
  env: Record<string, string>;
  token: string;
}

type StartResult = { kind: "done"; job: string } | Exclude<LauncherResult, { kind: "done" }>;

export class LaunchCommands {
  readonly timeoutMs = LAUNCHER_COMMAND_MAX_MS;
  readonly #options: CommandsOptions;
  readonly #stopping = new AbortController();

  constructor(options: CommandsOptions) {
    this.#options = options;
  }

  /** Ends commands in progress. */
  stop(): void {
    this.#stopping.abort();
  }

  /** Writes the token of a launch, which is the same after a restart, and builds the variables of its command. */
  async prepare({ id, launcher, labels, resources, created_at }: OpenLaunch): Promise<LaunchOrder> {
    const { key, url, paths } = this.#options;
    const names = JSON.parse(labels) as string[];
    const runner = { id, name: getLaunchRunnerName(launcher, id), labels: names, created_at };
    const token = await signRunnerToken(key(), runner);
    const directory = join(paths.launches, id);
    const tokenFile = join(directory, "token");
    await Deno.mkdir(directory, { recursive: true, mode: 0o700 });
    await Deno.writeTextFile(tokenFile, token, { mode: 0o600 });
    return {
      token,
      env: {
        SVC_RUNNER_URL: url(),
        SVC_RUN_LABELS: names.join(","),
        SVC_RUN_ID: id,
        SVC_RUNNER_TOKEN_FILE: tokenFile,
        ...buildResourceVariables(JSON.parse(resources) as Resources | null),
      },
    };
  }

  /** Removes the token of a launch that has ended. */
  async clean(id: string): Promise<void> {
    await Deno.remove(join(this.#options.paths.launches, id), { recursive: true }).catch(() => {});
  }

  /** Runs the command that starts a job. */
  async run(argv: readonly string[], { env, token }: LaunchOrder): Promise<StartResult> {
    const stdin = JSON.stringify({ ...env, token });
    const result = await this.#call(argv, { env, stdin, secret: token });
    if (result.kind !== "done") return result;
    return { kind: "done", job: readWord(result.line, JOB_MAX_CHARACTERS) };
  }

  /** Returns the first line of the state command, or `unknown`. Its first word is the state, and the others say why. */
  async askState(argv: readonly string[], launch: OpenLaunch): Promise<string> {
    const result = await this.#call(argv, { env: buildJobVariables(launch), stdin: "", secret: "" });
    const line = result.kind === "done" ? result.line.slice(0, STATE_MAX_CHARACTERS) : "";
    return line === "" ? "unknown" : line;
  }

  /** Runs the cancel command. Returns why it failed, or null. */
  async cancel(argv: readonly string[], job: LeftJob): Promise<string | null> {
    const result = await this.#call(argv, { env: buildJobVariables(job), stdin: "", secret: "" });
    return result.kind === "done" ? null : result.reason;
  }

  #call(
    argv: readonly string[],
    call: { env: Record<string, string>; stdin: string; secret: string },
  ): Promise<LauncherResult> {
    return runLauncherProgram({
      argv,
      ...call,
      timeoutMs: LAUNCHER_COMMAND_MAX_MS,
      signal: this.#stopping.signal,
    });
  }
}

function buildJobVariables({ id, job }: Pick<OpenLaunch, "id" | "job">): Record<string, string> {
  return { SVC_LAUNCH_JOB: job, SVC_RUN_ID: id };
}

// Part of an id could be the id of another job.
function readWord(line: string, max: number): string {
  const [word = ""] = line.split(/\s+/);
  return word.length > max ? "" : word;
}
