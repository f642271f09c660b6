import { delimiter, isAbsolute, join } from "node:path";
import { faultPoint } from "../../base/fault_point.ts";
import { createLogger } from "../../base/log.ts";
import { type Box, BoxStart, buildBoxLaunch, giveFiles } from "./box.ts";
import { describeBoxFault } from "./box_fault.ts";
import { createBoxGroup, getDelegatedGroup } from "./box_group.ts";
import { type BoxSocket, openBoxSocket } from "./box_network.ts";
import { buildLaunch, findMarked, type Isolation, signal as send, sweep } from "./isolation.ts";
import { type Program, startInPool } from "./namespace_pool.ts";
import { TimeLimits } from "./time_limits.ts";
import { ProcessInput } from "./process_input.ts";
import { readThrottled } from "./read_throttle.ts";

const log = createLogger("engine");

/** A program to run as an agent, and its limits. */
export interface ProcessSpec {
  /** SVC_RUN_ID in the environment. */
  runId: string;
  /** Absolute path; see findProgram(). */
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  /** Text for stdin, or a function that writes to stdin during the run. */
  stdin: string | ((input: ProcessInput) => void);
  isolation: Isolation;
  /** The box that the program runs in, or null for none. */
  box: Box | null;
  umask: number;
  /** If absent, there is no limit. */
  timeoutMs?: number;
  /** Limit of a time without output. If absent, there is no limit. */
  idleTimeoutMs?: number;
  stopGraceMs: number;
  signal: AbortSignal;
  /**
   * Returns how long the run has waited for a person so far, in ms. This time does not count for idleTimeoutMs. If absent, the run never
   * waits.
   */
  waitedMs?: () => number;
  /** Called when the program has exited. Its children and output may last longer. */
  onExit?: () => void;
  /** Called for each piece of output. The piece is valid until the function returns. */
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
  onStart?: (pid: number) => void;
}

export interface ProcessEnd {
  reason: "exited" | "timeout" | "idle_timeout" | "aborted";
  code: number;
}

/** The program could not be started. */
export class SpawnError extends Error {
  /** `isolation`: it could not be isolated as its worker asks. `setup`: settings rule it out. */
  readonly failure: "spawn_failed" | "isolation" | "setup";

  constructor(message: string, failure: "spawn_failed" | "isolation" | "setup" = "spawn_failed") {
    super(message);
    this.name = "SpawnError";
    this.failure = failure;
  }
}

// The first signal is INT, on which agents save their session, then TERM, then KILL (contract 3, Execution).
const INTERRUPT_GRACE_MS = 2_000;
// Limit for reading output after the end, because an escaped process can keep the pipes open.
const PIPES_MAX_MS = 2_000;

/** Runs a program until it and all its children have ended, and passes on its output. Throws only SpawnError. */
export async function runProcess(spec: ProcessSpec): Promise<ProcessEnd> {
  const socket = openSocket(spec);
  try {
    return await runToEnd(spec, socket);
  } finally {
    socket?.close();
  }
}

async function runToEnd(spec: ProcessSpec, socket: BoxSocket | null): Promise<ProcessEnd> {
  faultPoint("spawn.pre");
  const child = spawn(spec, socket);
  faultPoint("spawn.post");
  spec.onStart?.(child.pid);
  const ending = new ProcessEnding(spec, child.pid);
  const start = spec.box === null ? null : new BoxStart();
  const reading = Promise.all([
    read(child.stdout, (chunk) => {
      const rest = start === null ? chunk : start.readStdout(chunk);
      if (rest.length > 0) ending.pass(() => spec.onOutput("stdout", rest));
    }),
    read(child.stderr, (chunk) => {
      start?.readStderr(chunk);
      ending.pass(() => spec.onOutput("stderr", chunk));
    }),
  ]);
  if (typeof spec.stdin === "string") void feedStdin(child.stdin, spec.stdin);
  else spec.stdin(new ProcessInput(child.stdin));
  const status = await child.status;
  faultPoint("exit.seen");
  spec.onExit?.();
  await ending.finish();
  if (spec.isolation === "group") {
    // Ends the processes that the first process left in its group or elsewhere.
    send(-child.pid, "SIGKILL");
    await sweep(new Set([spec.runId]));
  }
  await Promise.race([reading, new Promise((resolve) => setTimeout(resolve, PIPES_MAX_MS))]);
  if (start !== null && !start.isComplete && ending.reason === "exited") {
    throw new SpawnError(`its box cannot be set up: ${describeBoxFault(start.stderr)}`, "isolation");
  }
  return { reason: ending.reason, code: status.code };
}

function openSocket({ box, onOutput }: ProcessSpec): BoxSocket | null {
  if (box === null || box.network === "host") return null;
  try {
    return openBoxSocket(box.network, { runDir: box.runDir, owner: box.user }, (words) => {
      onOutput("stderr", new TextEncoder().encode(`[${words}]\n`));
    });
  } catch (error) {
    throw buildBoxError(error);
  }
}

function buildBoxError(error: unknown): SpawnError {
  const words = error instanceof Error ? error.message : String(error);
  return new SpawnError(`its box cannot be set up: ${words}`, "isolation");
}

function spawn(spec: ProcessSpec, socket: BoxSocket | null): Deno.ChildProcess {
  return spec.box === null ? start(spec, spec.isolation) : startInBox(spec.box, spec, socket);
}

function start(program: Program, isolation: Isolation): Deno.ChildProcess {
  const pooled = isolation === "namespace" ? startInPool(program) : null;
  if (pooled !== null) return pooled;
  const { command, args, detached } = buildLaunch(isolation, program.umask, program.command, program.args);
  try {
    return new Deno.Command(command, {
      args,
      cwd: program.cwd,
      env: program.env,
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      // Starts agents in a new session, so that signals to the service do not reach them.
      detached,
    }).spawn();
  } catch (error) {
    throw new SpawnError(error instanceof Error ? error.message : String(error));
  }
}

// As the service's own. The program gets its umask in the box.
const BOX_UMASK = 0o077;

function startInBox(box: Box, spec: ProcessSpec, socket: BoxSocket | null): Deno.ChildProcess {
  try {
    giveFiles(box);
    const delegated = getDelegatedGroup();
    const group = delegated === null
      ? null
      : createBoxGroup(delegated, crypto.randomUUID(), box.limits, box.total);
    const { command, args, env } = buildBoxLaunch(box, spec, group, socket);
    // Bubblewrap becomes the first process of the namespace: it ignores INT and TERM, which are for the agent, and all others end with it.
    const [first, rest] = spec.isolation === "namespace" ? ["exec", [command, ...args]] : [command, args];
    const child = start({ command: first, args: rest, env, cwd: "/", umask: BOX_UMASK }, spec.isolation);
    if (group !== null) void child.status.then(() => Deno.remove(group)).catch(() => {});
    return child;
  } catch (error) {
    throw buildBoxError(error);
  }
}

/** Ends the process tree on request, after its time limit, or after too long without output. */
class ProcessEnding {
  reason: ProcessEnd["reason"] = "exited";
  readonly #spec: ProcessSpec;
  readonly #pid: number;
  readonly #limits: TimeLimits;
  readonly #onAbort = () => this.#end("aborted");
  #hasEnded = false;
  #escalation: Promise<void> | null = null;

  constructor(spec: ProcessSpec, pid: number) {
    this.#spec = spec;
    this.#pid = pid;
    this.#limits = new TimeLimits(spec, (reason) => this.#end(reason));
    spec.signal.addEventListener("abort", this.#onAbort, { once: true });
    if (spec.signal.aborted) this.#onAbort();
  }

  pass(pass: () => void): void {
    this.#limits.restart();
    pass();
  }

  /** Stops sending signals, because the process has ended. */
  async finish(): Promise<void> {
    this.#hasEnded = true;
    this.#limits.end();
    this.#spec.signal.removeEventListener("abort", this.#onAbort);
    await this.#escalation;
  }

  #end(reason: ProcessEnd["reason"]): void {
    if (this.#escalation !== null || this.#hasEnded) return;
    this.reason = reason;
    this.#escalation = this.#escalate();
  }

  async #escalate(): Promise<void> {
    await this.#signalTree("SIGINT");
    if (await this.#waitForExit(INTERRUPT_GRACE_MS)) return;
    await this.#signalTree("SIGTERM");
    if (await this.#waitForExit(this.#spec.stopGraceMs)) return;
    await this.#signalTree("SIGKILL");
    send(-this.#pid, "SIGKILL");
    send(this.#pid, "SIGKILL");
  }

  // An agent's tools run in separate sessions, which a signal to the group does not reach (facts, engines 2.6). The outermost process
  // holds the namespace and must end last.
  async #signalTree(name: Deno.Signal): Promise<void> {
    const pids = await findMarked(new Set([this.#spec.runId]));
    const inner = this.#spec.isolation === "namespace" ? pids.filter((pid) => pid !== this.#pid) : pids;
    if (this.#hasEnded) return;
    for (const pid of inner) send(pid, name);
    if (Deno.build.os !== "linux") send(-this.#pid, name);
  }

  async #waitForExit(ms: number): Promise<boolean> {
    const until = performance.now() + ms;
    while (!this.#hasEnded && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return this.#hasEnded;
  }
}

async function read(stream: ReadableStream<Uint8Array>, pass: (chunk: Uint8Array) => void): Promise<void> {
  let failed = false;
  try {
    await readThrottled(stream, (chunk) => {
      try {
        pass(chunk);
      } catch (error) {
        // The program would block on a full pipe if reading stopped.
        if (!failed) log.error("Cannot process a piece of a run's output: {error}", { error });
        failed = true;
      }
    });
  } catch {
    // A broken pipe only ends the output.
  }
}

/** Writes a text to the stdin of a program. Never throws. */
export async function feedStdin(stream: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stream.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
  } catch {
    // The program may end without reading its stdin.
  }
}

/**
 * Finds the absolute path of a program: the command itself when it contains a slash, else on `path`. Throws a SpawnError with the reason. A
 * shell would only return 127.
 */
export function findProgram(command: string, path: string): string {
  const places = command.includes("/")
    ? [command]
    : path.split(delimiter).map((folder) => join(folder, command));
  let refusal = `${command} was not found on PATH`;
  for (const place of places) {
    if (!isAbsolute(place)) continue;
    try {
      const info = Deno.statSync(place);
      if (info.isFile && ((info.mode ?? 0o111) & 0o111) !== 0) return place;
      refusal = info.isFile ? `${place} is not executable` : `${place} is not a file`;
    } catch (error) {
      if (command.includes("/")) {
        refusal = error instanceof Deno.errors.NotFound
          ? `${place} does not exist`
          : `${place} cannot be read`;
      }
    }
  }
  throw new SpawnError(refusal);
}
