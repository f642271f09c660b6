import { dirname, join } from "node:path";
import type { EngineConfig } from "./config.ts";
import { USAGE_UNKNOWN } from "../domain/execution.ts";
import type { Adapter, AgentCommand, AgentEvent, Dialogue, Order, ProviderWindow } from "./adapter.ts";
import { splitArgs } from "./arguments.ts";
import type { EngineRun, Machine } from "./engine.ts";
import { detectIsolation } from "./isolation.ts";
import { findProgram, type ProcessEnd, runProcess, SpawnError } from "./process.ts";
import { Reading } from "./reading.ts";

/** The engine of a run: its configuration, machine and adapter. */
export interface AgentParts {
  config: EngineConfig;
  machine: Machine;
  adapter: Adapter;
}

/** How one process of a run is started: with a new session, or with one to resume. */
export interface Start {
  sessionId: string;
  resume: boolean;
  prompt: string;
}

/** What is known when that process has ended. */
export interface Ran {
  start: Start;
  end: ProcessEnd;
  reading: Reading;
  /** It ended by itself, or had sent its final event before we ended it. */
  finished: boolean;
  /** It was asked to resume a session and started another one. */
  strayed: boolean;
}

// An engine that waits for the end of a rate limit occupies a slot: the task can wait without one.
const LIMIT_WAIT_MAX_MS = 60_000;

/** Runs one process of an agent to its end. Throws SpawnError when it cannot be started. */
export async function runAgentProcess(parts: AgentParts, run: EngineRun, start: Start): Promise<Ran> {
  const { config, machine, adapter } = parts;
  const program = findProgram(config.command || adapter.program, machine.path);
  const order = orderOf(parts, run, start);
  const command = adapter.command(order);
  writeFiles(command, run.stateDir);
  const watch = new Watch(run, start);
  let dialogue: Dialogue | undefined;
  const reading = new Reading({
    adapter,
    hear: adapter.converse && ((line) => dialogue?.hear(line) ?? []),
    sessionId: start.sessionId,
    log: run.log,
    events: run.events,
    usedBefore: start.resume && run.session !== null ? run.session.usage : USAGE_UNKNOWN,
    onEvent: (event) => {
      watch.event(event);
      if (event.kind === "usage") run.onUsage(reading.usage.run);
      else if (event.kind === "windows") run.onWindows(event.windows);
      else if (event.kind === "tool_start") run.onStep?.(event.name, event.input);
    },
  });
  const end = await runProcess({
    runId: run.runId,
    command: program,
    args: command.args,
    cwd: run.workDir,
    env: environmentOf(config, run, command),
    stdin: (adapter.converse && ((input) => {
      dialogue = adapter.converse?.(order, {
        say: (text) => input.write(text),
        close: () => input.close(),
        take: (events) => reading.take(events),
      });
    })) ?? command.stdin,
    isolation: await detectIsolation(),
    umask: machine.umask,
    timeoutMs: config.timeout,
    idleTimeoutMs: config.idle_timeout,
    stopGraceMs: machine.stopGraceMs,
    signal: watch.signal,
    finished: watch.finished.signal,
    waitedMs: run.waitedMs,
    onStart: run.onStart,
    onEnding: () => {
      watch.end();
      dialogue?.cancel();
    },
    onOutput: (stream, chunk) => reading.add(stream, chunk),
  });
  dialogue?.close();
  watch.end();
  const { usageFile } = command;
  reading.end(usageFile === null ? null : await Deno.readTextFile(usageFile).catch(() => null));
  const windows = windowsOf(adapter, run, reading.session || start.sessionId);
  if (windows.length > 0) run.onWindows(windows);
  return { start, end, reading, finished: end.reason === "exited" || watch.left, strayed: watch.strayed };
}

const TAIL_BYTES = 64 * 1024;

// What the engine says of its provider's windows on the disk only; nothing where it says nothing.
function windowsOf({ sessionLog, login }: Adapter, run: EngineRun, sessionId: string): ProviderWindow[] {
  if (sessionLog === undefined || sessionId === "") return [];
  const home = run.stateDir ?? join(run.env.HOME ?? "", login.home);
  for (const folder of sessionLog.folders(sessionId)) {
    try {
      for (const { name } of Deno.readDirSync(join(home, folder))) {
        if (sessionLog.isName(name, sessionId)) return sessionLog.windows(tailOf(join(home, folder, name)));
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) return [];
    }
  }
  return [];
}

function tailOf(path: string): string {
  using file = Deno.openSync(path);
  file.seekSync(Math.max(0, file.statSync().size - TAIL_BYTES), Deno.SeekMode.Start);
  const bytes = new Uint8Array(TAIL_BYTES);
  return new TextDecoder().decode(bytes.subarray(0, file.readSync(bytes) ?? 0));
}

/** Ends a process that has become useless, and knows whether it was done before. */
class Watch {
  readonly finished = new AbortController();
  readonly signal: AbortSignal;
  strayed = false;
  /** The outcome of the process counts, although we ended it. */
  left = false;
  readonly #run: EngineRun;
  readonly #start: Start;
  readonly #useless = new AbortController();
  #limit: ReturnType<typeof setTimeout> | undefined;
  #ended = false;

  constructor(run: EngineRun, start: Start) {
    this.#run = run;
    this.#start = start;
    this.signal = AbortSignal.any([run.signal, this.#useless.signal]);
  }

  event(event: AgentEvent): void {
    if (event.kind === "session") this.#session(event.id ?? this.#start.sessionId);
    else if (event.kind === "done") this.finished.abort();
    if (this.#ended) return;
    if (event.kind === "failure" && event.failure.kind === "rate_limited") {
      this.#limit ??= setTimeout(() => this.#useless.abort(), LIMIT_WAIT_MAX_MS);
    } else if (event.kind !== "notice" && event.kind !== "windows" && event.kind !== "usage") {
      this.#forgetLimit();
    }
  }

  /** The process has ended or is being ended: events from here on do not change its outcome. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#forgetLimit();
    this.left = this.finished.signal.aborted || this.#useless.signal.aborted && !this.#run.signal.aborted;
  }

  #session(id: string): void {
    if (!this.#start.resume || id === this.#start.sessionId) return this.#run.onSession(id);
    this.strayed = true;
    this.#useless.abort();
  }

  #forgetLimit(): void {
    clearTimeout(this.#limit);
    this.#limit = undefined;
  }
}

function orderOf({ config, machine }: AgentParts, run: EngineRun, start: Start): Order {
  return {
    ...start,
    workDir: run.workDir,
    runDir: run.runDir,
    stateDir: run.stateDir,
    ctl: run.env.SVC_CTL ?? "svc",
    model: config.model,
    permissions: config.permissions,
    extraArgs: [...config.args, ...splitArgs(run.extraArgs)],
    root: machine.root,
    env: run.env,
    tools: run.tools,
    schema: run.schema,
  };
}

// The adapter's variables override those of the run, and the operator's override both, except PATH and SVC_*.
function environmentOf(config: EngineConfig, run: EngineRun, command: AgentCommand): Record<string, string> {
  const fixed = Object.entries(run.env).filter(([name]) => name === "PATH" || name.startsWith("SVC_"));
  return {
    ...run.env,
    ...SHELL,
    ...command.env,
    ...config.env,
    ...command.fixedEnv,
    ...Object.fromEntries(fixed),
  };
}

// Some engines run their tools with $SHELL, and none supports every shell (facts, engines 2.10).
const bash = ["/bin/bash", "/usr/bin/bash"].find((path) => {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
});
const SHELL = bash === undefined ? {} : { SHELL: bash };

function writeFiles(command: AgentCommand, stateDir: string | null): void {
  try {
    if (stateDir !== null) Deno.mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    for (const { path, content, executable } of command.files) {
      Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      const present = textOf(path);
      const text = content(present);
      if (text !== present) Deno.writeTextFileSync(path, text, { mode: executable ? 0o700 : 0o600 });
    }
  } catch (error) {
    throw new SpawnError(`its files cannot be written: ${error instanceof Error ? error.message : error}`);
  }
}

function textOf(path: string): string | null {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}
