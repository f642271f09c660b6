// Gives each case of the conformance program its own service, directory and runner processes.
import { join } from "node:path";
import type { WireOrder } from "../../../src/domain/workers/runner.ts";
import { ConformanceService, pause, type ServedRun, TOKEN } from "./service.ts";

const WAIT_MAX_MS = 45_000;
const QUIET_MS = 700;
/** How long a case waits after the exit of the runner. */
const EXITED_MS = 3_000;

/** A named check, which throws when the runner breaks the protocol. */
export interface ConformanceCase {
  name: string;
  /** The sentence of docs/reference/runner-protocol.md that the case checks, word by word. */
  rule: string;
  check: (bench: Bench) => Promise<void>;
}

/** A variable of the runner, which its programs must not get. */
const OWN_VARIABLE = "CONFORMANCE_OF_RUNNER";

interface RunnerUnderTest {
  child: Deno.ChildProcess;
  /** Resolves with the exit code. */
  ended: Promise<number>;
  hasEnded: boolean;
}

interface RunnerSource {
  command: readonly string[];
  /** Aborts when the program has to end. */
  signal: AbortSignal;
}

export class Bench implements AsyncDisposable {
  readonly service = new ConformanceService();
  readonly folder: string;
  readonly #command: readonly string[];
  readonly #signal: AbortSignal;
  readonly #runners: RunnerUnderTest[] = [];

  constructor(folder: string, { command, signal }: RunnerSource) {
    this.folder = folder;
    this.#command = command;
    this.#signal = signal;
  }

  get workRoot(): string {
    return join(this.folder, "work");
  }

  /** Starts the runner. A second start has the same directory. */
  async start(): Promise<RunnerUnderTest> {
    this.#signal.throwIfAborted();
    const tokenFile = join(this.folder, "token");
    await Deno.mkdir(this.workRoot, { recursive: true });
    await Deno.writeTextFile(tokenFile, TOKEN, { mode: 0o600 });
    const [program = "", ...args] = this.#command;
    const log = await Deno.open(join(this.folder, "runner.log"), { append: true, create: true });
    const child = new Deno.Command(program, {
      args,
      env: {
        SVC_RUNNER_URL: this.service.url,
        SVC_RUNNER_TOKEN_FILE: tokenFile,
        SVC_RUNNER_WORK_ROOT: this.workRoot,
        [OWN_VARIABLE]: "of the runner alone",
      },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    void child.stderr.pipeTo(log.writable).catch(() => {});
    const runner: RunnerUnderTest = {
      child,
      hasEnded: false,
      ended: child.status.then(({ code }) => {
        runner.hasEnded = true;
        return code;
      }),
    };
    this.#runners.push(runner);
    return runner;
  }

  /** Adds a run of a shell script to the queue. */
  add(script: string, change: Partial<WireOrder> = {}, id: string = crypto.randomUUID()): string {
    const order = buildOrder(this.workRoot, id, script, change);
    this.service.waiting.push(order);
    return order.execution.execution_id;
  }

  /** Formats a loop that writes to the file "alive". It ends with the case, also when the runner does not end it. */
  formatLoop(): string {
    return `while [ -d ${this.folder} ]; do echo x >> ${this.file("alive")}; sleep 0.1; done`;
  }

  /** Returns the path of a file for scripts, outside the runner's directory. */
  file(name: string): string {
    return join(this.folder, name);
  }

  /** Reads a file of a script, "" when it is missing. */
  async read(name: string): Promise<string> {
    return await Deno.readTextFile(this.file(name)).catch(() => "");
  }

  /** Waits until the run has an end that the service has stored. */
  async waitForEnd(id: string): Promise<ServedRun> {
    await this.wait("the end of the run", () => (this.service.runs.get(id)?.ends.length ?? 0) > 0);
    return this.service.runs.get(id) as ServedRun;
  }

  /** Waits until `check` returns true. */
  async wait(what: string, check: () => boolean | Promise<boolean>): Promise<void> {
    const until = Date.now() + WAIT_MAX_MS;
    let exitedAt: number | null = null;
    while (!await check()) {
      this.#signal.throwIfAborted();
      if (Date.now() > until) throw new Error(`no sign of ${what} within ${WAIT_MAX_MS / 1_000} s`);
      exitedAt ??= this.#hasExited ? Date.now() : null;
      if (exitedAt !== null && Date.now() > exitedAt + EXITED_MS) {
        throw new Error(`the runner exited with ${await this.#runners.at(-1)?.ended} before ${what}`);
      }
      await pause(20);
    }
  }

  get #hasExited(): boolean {
    return this.#runners.length > 0 && this.#runners.every(({ hasEnded }) => hasEnded);
  }

  /** Waits until the script that appends to the file has ended. */
  async waitForQuiet(name: string): Promise<void> {
    let size = -1;
    let since = Date.now();
    await this.wait("the end of the program", async () => {
      const now = (await this.read(name)).length;
      if (now !== size) [size, since] = [now, Date.now()];
      return Date.now() - since > QUIET_MS;
    });
  }

  /** Waits for the exit code of a runner. */
  async waitForExit(runner: RunnerUnderTest): Promise<number> {
    await this.wait("the end of the runner", () => runner.hasEnded);
    return await runner.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // SIGTERM twice: a runner ends its programs and itself.
    for (let attempt = 0; attempt < 2; attempt++) {
      for (const { child, hasEnded } of this.#runners) if (!hasEnded) signal(child, "SIGTERM");
      await pause(100);
    }
    for (const { child, ended } of this.#runners) {
      const timer = setTimeout(() => signal(child, "SIGKILL"), 3_000);
      await ended;
      clearTimeout(timer);
    }
    await this.service[Symbol.asyncDispose]();
    // A program that the runner has left behind may write while its directory is removed.
    for (let attempt = 0; attempt < 3; attempt++) {
      if (await Deno.remove(this.folder, { recursive: true }).then(() => true, () => false)) return;
      await pause(200);
    }
  }
}

function signal(child: Deno.ChildProcess, name: Deno.Signal): void {
  try {
    child.kill(name);
  } catch {
    // The process has ended.
  }
}

/** Fails the case when the values differ. */
export function expectEqual(what: string, actual: unknown, wanted: unknown): void {
  const [one, other] = [JSON.stringify(actual), JSON.stringify(wanted)];
  if (one !== other) throw new Error(`${what}: ${one?.slice(0, 300)} instead of ${other?.slice(0, 300)}`);
}

/** Fails the case unless `holds`. */
export function expectTrue(what: string, holds: boolean): void {
  if (!holds) throw new Error(what);
}

/** Lists the lines of an environment with variables that only the runner may have. */
export function listOwnVariables(env: readonly string[]): string[] {
  return env.filter((line) => line.startsWith("SVC_RUNNER_") || line.startsWith(OWN_VARIABLE));
}

export function readLog({ log }: ServedRun): string {
  return new TextDecoder().decode(log);
}

function buildOrder(root: string, id: string, script: string, change: Partial<WireOrder>): WireOrder {
  const worker = crypto.randomUUID();
  return {
    execution: {
      ...{ execution_id: id, task_id: crypto.randomUUID(), worker_id: worker, run_id: crypto.randomUUID() },
      ...{ session_key: "conformance", message_id: "m", attempt: 1, engine: "sh", instruction: script },
    },
    work_dir: join(root, "workers", worker),
    ...{ repo: null, verify: null },
    ...{ env: {}, secrets: {}, mcp: { servers: {}, secrets: [] }, setup_error: "", gateway: null },
    isolation: { box: null, network: null, max_network: "host", hidden: [] },
    time_zone: "UTC",
    max_log_bytes: 10_000_000,
    grant: { subject: `worker:${worker}`, scopes: [] },
    token: "token-of-the-run",
    files: [],
    briefing: { context: "{}", prompt: script, retelling: script, session: null, extraArgs: "" },
    ...change,
  };
}

/** Runs the cases, `jobs` at a time, until the signal. Returns the number of failed ones. */
export async function runCases(
  cases: readonly ConformanceCase[],
  source: RunnerSource,
  { jobs, print }: { jobs: number; print: (line: string) => void },
): Promise<number> {
  const rest = [...cases];
  let failed = 0;
  const work = async () => {
    for (let one = rest.shift(); one !== undefined; one = rest.shift()) {
      const error = await runCase(one, source);
      if (source.signal.aborted) return;
      if (error !== null) failed++;
      print(error === null ? `pass  ${one.name}` : `FAIL  ${one.name}\n${error}\n      page:   ${one.rule}`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  const { aborted } = source.signal;
  print(
    aborted ? "ended before all cases were checked" : `${cases.length - failed} passed, ${failed} failed`,
  );
  return failed;
}

/** Returns null, or what the runner did. */
async function runCase({ check }: ConformanceCase, source: RunnerSource): Promise<string | null> {
  const folder = await Deno.makeTempDir({ prefix: "svc-conformance-" });
  const bench = new Bench(folder, source);
  const found: string[] = [];
  try {
    await check(bench);
  } catch (error) {
    found.push(error instanceof Error ? error.message : String(error));
  }
  found.push(...bench.service.faults.slice(0, 3));
  const log = (await bench.read("runner.log")).trim().split("\n").at(-1) ?? "";
  await bench[Symbol.asyncDispose]();
  if (found.length === 0) return null;
  return [
    ...found.map((words) => `      runner: ${words}`),
    ...(log === "" ? [] : [`      stderr: ${log}`]),
  ].join("\n");
}
