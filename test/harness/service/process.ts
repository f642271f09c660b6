import { join } from "node:path";
import { V8_FLAGS } from "../../../build/v8_flags.ts";
import { ROOT } from "../house/tree.ts";

/** A real `svc serve` process. */
export class ServerProcess {
  readonly #stderr: StderrReader;

  constructor(
    readonly dataDir: string,
    readonly child: Deno.ChildProcess,
    readonly url: string,
    stderr: StderrReader,
  ) {
    this.#stderr = stderr;
  }

  get stderr(): string {
    return this.#stderr.text;
  }

  /** Resolves when the process has ended and `stderr` is complete. */
  get ended(): Promise<Deno.CommandStatus> {
    return this.#stderr.ended;
  }

  async memory(): Promise<number> {
    const status = await Deno.readTextFile(`/proc/${this.child.pid}/status`);
    // A killed process has no memory until its parent reaps it.
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
  }

  /** Counts its open descriptors. */
  descriptors(): number {
    return [...Deno.readDirSync(`/proc/${this.child.pid}/fd`)].length;
  }

  /** Lists its children as `ps` shows them: state and name, zombies with state Z. */
  async children(): Promise<{ pid: number; state: string; name: string }[]> {
    const found: { pid: number; state: string; name: string }[] = [];
    for (const { name: pid } of Deno.readDirSync("/proc")) {
      const stat = /^\d+$/.test(pid) ? await Deno.readTextFile(`/proc/${pid}/stat`).catch(() => "") : "";
      const [, name = "", state = "", parent = ""] = /^\d+ \((.*)\) (\S) (\d+)/s.exec(stat) ?? [];
      if (Number(parent) === this.child.pid) found.push({ pid: Number(pid), state, name });
    }
    return found;
  }

  /** Sends a signal and waits for the end; returns exit code and ms. */
  async end(
    signal: Deno.Signal = "SIGTERM",
  ): Promise<{ code: number; signal: Deno.Signal | null; ms: number }> {
    const started = performance.now();
    const { code, signal: by } = await endProcess(this.child, signal, this.ended);
    return { code, signal: by, ms: performance.now() - started };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

/** Sends a signal to a process that may already have ended, and waits for its end. */
export async function endProcess(
  child: Deno.ChildProcess,
  signal: Deno.Signal,
  ended: Promise<Deno.CommandStatus> = child.status,
): Promise<Deno.CommandStatus> {
  try {
    child.kill(signal);
  } catch {
    // The process has already ended.
  }
  return await ended;
}

/** Reads the stderr of a process. */
export class StderrReader {
  text = "";
  /** Resolves when the process has ended and the text is complete. The status alone can come before the last text. */
  readonly ended: Promise<Deno.CommandStatus>;

  constructor(child: Deno.ChildProcess) {
    this.ended = Promise.all([child.status, this.#read(child.stderr)]).then(([status]) => status);
  }

  async #read(stderr: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stderr) this.text += decoder.decode(chunk, { stream: true });
  }
}

interface ProcessOptions {
  dataDir: string;
  env?: Record<string, string>;
  args?: string[];
  /** Runs this program instead of `deno run -A main.ts`. */
  program?: string[];
  /** Passes only `env`, without the settings of tests. */
  bare?: boolean;
  /** The current directory, if not the data directory. */
  cwd?: string;
  /** Starts the server with --standby, and waits until it is on standby or is ready. */
  standby?: boolean;
}

const buildCommand = (main: string) => [Deno.execPath(), "run", V8_FLAGS, "-A", join(ROOT, main)];

/** The command that runs `svc` from source. */
export const SOURCE = buildCommand("main.ts");

/** The command that runs `svc`: from the bundle of `make test`, else from source. */
export const SVC = buildCommand(Deno.env.get("SVC_TEST_BUNDLE") ?? "main.ts");

/** Starts `svc serve` on a free port and waits until it is ready. */
export async function startServer(options: ProcessOptions): Promise<ServerProcess> {
  const { dataDir, env = {}, args = [], program = SVC, bare = false, cwd = dataDir, standby = false } =
    options;
  await Deno.remove(join(dataDir, "server.json")).catch(() => {});
  const [command = "", ...rest] = program;
  const child = new Deno.Command(command, {
    args: [...rest, "serve", ...args, ...(standby ? ["--standby"] : [])],
    cwd,
    clearEnv: bare,
    env: bare ? env : { SVC_DATA_DIR: dataDir, SVC_SERVER__PORT: "0", SVC_BEE__QUIET_WINDOW: "0ms", ...env },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const stderr = new StderrReader(child);
  let ended = false;
  void stderr.ended.then(() => ended = true);
  while (!ended) {
    const url = await findReadyUrl(dataDir, standby ? ["ready", "standby"] : ["ready"]);
    if (url !== null) return new ServerProcess(dataDir, child, url, stderr);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`svc serve ended before it was ready: ${stderr.text}`);
}

async function findReadyUrl(dataDir: string, words: string[]): Promise<string | null> {
  try {
    const { url } = JSON.parse(await Deno.readTextFile(join(dataDir, "server.json")));
    const response = await fetch(`${url}/readyz`);
    return words.includes((await response.json()).status) ? url : null;
  } catch {
    return null;
  }
}

export interface CommandResult {
  code: number;
  out: string;
  err: string;
}

/** Runs `svc` once. The environment has only `env`, PATH and HOME. */
export async function svc(
  args: string[],
  options: { dataDir: string; env?: Record<string, string>; stdin?: string; program?: string[] },
): Promise<CommandResult> {
  const [command = "", ...rest] = options.program ?? SVC;
  const child = new Deno.Command(command, {
    args: [...rest, ...args],
    cwd: options.dataDir,
    clearEnv: true,
    env: {
      PATH: Deno.env.get("PATH") ?? "",
      HOME: Deno.env.get("HOME") ?? "/",
      SVC_DATA_DIR: options.dataDir,
      SVC_SERVER__PORT: "0",
      ...options.env,
    },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  if (options.stdin !== undefined) {
    await writer.write(new TextEncoder().encode(options.stdin)).catch(() => {});
  }
  await writer.close().catch(() => {});
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr).replace(DENO_WAITS, "") };
}

// Deno prints this when it runs from source while another Deno reads the same packages.
// deno-lint-ignore no-control-regex
const DENO_WAITS = /^(\u001b\[[\d;]*m)*Blocking(\u001b\[[\d;]*m)* waiting for file lock.*\n/m;

/** Creates a directory that is removed on disposal. */
export async function createTempDir(): Promise<{ path: string } & AsyncDisposable> {
  const path = await Deno.makeTempDir({ prefix: "svc-test-" });
  return {
    path,
    async [Symbol.asyncDispose]() {
      await Deno.remove(path, { recursive: true }).catch(() => {});
    },
  };
}
