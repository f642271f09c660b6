import { basename, dirname, join } from "node:path";
import { createId } from "../base/id.ts";
import { isWithin } from "../base/paths.ts";
import { replacePlain } from "../base/plain_file.ts";
import { createLogger } from "../base/log.ts";
import { quoteShellWord } from "../base/shell.ts";
import type { EngineRun } from "./engine.ts";
import { type AgentSetup, buildEnvironment, buildOrder, type TurnRequest, writeFiles } from "./launch.ts";
import { type Box, type BoxUser, giveFile } from "./process/box.ts";
import { detectIsolation, findTree, type Isolation, sweep } from "./process/isolation.ts";
import { listMountsBelow } from "./process/mounts.ts";
import { findProgram, type ProcessEnd, runProcess } from "./process/process.ts";
import type { ProcessInput } from "./process/process_input.ts";
import type { AgentCommand, AgentEvent, Dialogue, Line, Link, Order } from "./protocol/adapter.ts";

const log = createLogger("engine");

interface TurnListener {
  output(stream: "stdout" | "stderr", chunk: Uint8Array): void;
  /** Receives events that have no line, such as a request time-out. */
  take(events: AgentEvent[]): void;
  /** Called when the program has exited. Its pipes may still hold output. */
  exited(): void;
}

/** The SVC_RUN_ID and private directory of a process. A process that stays open has others than its runs. */
interface ProcessPlace {
  id: string;
  dir: string;
  /** Whether the process may take several turns. */
  stays: boolean;
}

// Variables that change with each run. A process that stays open has the values of its first run, so each bash that it starts reads the
// current ones from turn.sh.
const RUN_VARIABLES = ["SVC_TOKEN", "SVC_EXECUTION_ID", "SVC_TASK_ID", "SVC_MESSAGE_ID"];
const CLOSED_WITHIN_MS = 3_000;
const STRAY_AGAIN_MS = 100;

/**
 * Runs the turns of one agent process (contract 19).
 */
export class AgentProcess {
  readonly startedAt = performance.now();
  readonly ended: Promise<ProcessEnd>;
  readonly stays: boolean;
  /** The file to which the engine writes its usage when it exits. */
  readonly usageFile: string | undefined;
  /** Number of started turns. */
  turns = 0;
  pid = 0;
  hasEnded = false;
  /** Called when the agent works between turns, without a request. */
  onWork = () => {};
  readonly #setup: AgentSetup;
  readonly #place: ProcessPlace;
  readonly #isolation: Isolation;
  readonly #ending = new AbortController();
  #input: ProcessInput | null = null;
  #dialogue: Dialogue | null = null;
  #listener: TurnListener | null = null;
  /** The process's own pids, found before the agent did any work. */
  #ownPids: Promise<Set<number>> | null = null;

  private constructor(
    setup: AgentSetup,
    place: ProcessPlace & { isolation: Isolation; usageFile: string | undefined },
    run: (process: AgentProcess) => Promise<ProcessEnd>,
  ) {
    this.#setup = setup;
    this.#place = place;
    this.#isolation = place.isolation;
    this.stays = place.stays;
    this.usageFile = place.usageFile;
    this.ended = run(this).finally(async () => {
      this.hasEnded = true;
      this.#dialogue?.close();
      // Awaited, because the service may exit as soon as its processes have ended.
      if (this.stays) await Deno.remove(place.dir, { recursive: true }).catch(() => {});
    });
    // The turn reports a failed start. Without this handler the rejection would crash the service.
    this.ended.catch(() => {});
  }

  /** Starts a process for this run. Throws SpawnError. */
  static async start(
    setup: AgentSetup,
    run: EngineRun,
    request: TurnRequest,
    stays: boolean,
  ): Promise<AgentProcess> {
    const { config, machine, adapter } = setup;
    const program = findProgram(config.command || adapter.program, machine.path);
    const id = stays ? createId() : run.runId;
    const place = { id, dir: stays ? join(dirname(run.runDir), id) : run.runDir, stays };
    const { order, command, env } = prepareProcess(setup, run, request, place);
    const isolation = await detectIsolation();
    const startDialogue = stays ? adapter.open?.startDialogue : adapter.startDialogue;
    const { usageFile } = command;
    const process = new AgentProcess(setup, { ...place, isolation, usageFile }, (process) =>
      runProcess({
        runId: id,
        command: program,
        args: command.args,
        cwd: run.workDir,
        env,
        stdin: startDialogue === undefined
          ? request.prompt
          : (input) => process.#openDialogue(input, (link) => startDialogue(order, link)),
        isolation,
        box: buildProcessBox(run, place.dir, command),
        umask: machine.umask,
        // Starts without limits, because the turn has limits.
        stopGraceMs: machine.stopGraceMs,
        signal: process.#ending.signal,
        onStart: (pid) => process.pid = pid,
        onExit: () => process.#listener?.exited(),
        onOutput: (stream, chunk) => process.#read(stream, chunk),
      }));
    // Without a pid the start has failed, and `ended` throws the reason.
    if (process.pid === 0) await process.ended;
    return process;
  }

  /** Whether the process has ended or is being ended. */
  get isLeaving(): boolean {
    return this.hasEnded || this.#ending.signal.aborted;
  }

  /** Whether the agent gets its session id over stdin instead of in an argument. */
  get hasDialogue(): boolean {
    return this.#dialogue !== null;
  }

  /** Starts a turn. The agent's tools get the token and context of this run, and `listener` gets the output. */
  startTurn(run: EngineRun, request: TurnRequest, listener: TurnListener): void {
    this.turns++;
    this.#listener = listener;
    if (this.stays) {
      makeTmp(this.#place.dir);
      writeRunFiles(this.#place.dir, this.#setup, run);
      giveRunFiles(this.#place.dir, run.box?.user ?? null);
    }
    this.#dialogue?.turn(buildOrder(this.#setup, run, request), (events) => this.#listener?.take(events));
  }

  parse(line: Line): AgentEvent[] {
    return this.#dialogue === null ? this.#setup.adapter.parseLine(line) : this.#dialogue.hear(line);
  }

  /** Asks the agent to end its turn. The process continues. */
  interrupt(): void {
    this.#dialogue?.interrupt();
  }

  /** Called when the session is open. Processes that start later belong to a turn. */
  markReady(): void {
    if (this.stays) this.#ownPids ??= this.#findPids().then((pids) => new Set(pids), () => new Set());
  }

  /** Ends a turn: removes its listener, and deletes the token of the run. */
  endTurn(): void {
    this.#listener = null;
    if (!this.stays) return;
    for (const name of ["token", "turn.sh"]) {
      try {
        Deno.removeSync(join(this.#place.dir, name));
      } catch {
        // The directory is removed when the process ends.
      }
    }
  }

  /** Ends the process with all its children. Resolves when it has ended. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.ended.catch(() => {});
  }

  /** Closes stdin and gives the process 3 s to exit. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#input?.close();
    const timer = setTimeout(() => this.#ending.abort(), CLOSED_WITHIN_MS);
    await this.ended.catch(() => {});
    clearTimeout(timer);
  }

  /** Whether a program that a turn started is still running. Such a program must end with its run. */
  async hasStrays(): Promise<boolean> {
    if (await this.#countStrays() === 0) return false;
    await new Promise((resolve) => setTimeout(resolve, STRAY_AGAIN_MS));
    return await this.#countStrays() > 0;
  }

  /** Returns the memory of the process and its children in bytes, or 0 where the system does not report it. */
  async readRss(): Promise<number> {
    const pids = await this.#findPids();
    return pids.reduce((sum, pid) => sum + readRss(pid), 0);
  }

  async #countStrays(): Promise<number> {
    const own = await this.#ownPids ?? new Set();
    return (await this.#findPids()).filter((pid) => !own.has(pid)).length;
  }

  #findPids(): Promise<number[]> {
    return findTree(this.#isolation, this.pid, this.#place.id);
  }

  #openDialogue(input: ProcessInput, start: (link: Link) => Dialogue): void {
    this.#input = input;
    const close = this.stays ? () => {} : () => input.close();
    this.#dialogue = start({ say: (text) => input.write(text), close });
  }

  #read(stream: "stdout" | "stderr", chunk: Uint8Array): void {
    if (this.#listener !== null) this.#listener.output(stream, chunk);
    else if (this.#setup.adapter.open?.showsWork?.(new TextDecoder().decode(chunk))) this.onWork();
  }
}

/**
 * Ends the processes that an earlier service left open, and removes their directories below `runs`. Each directory is named after the
 * mark of its process. Never throws.
 */
export async function endOpenProcesses(runs: string): Promise<void> {
  try {
    const marks = new Set([...Deno.readDirSync(runs)].map(({ name }) => name));
    if (marks.size > 0) await sweep(marks);
    await Deno.remove(runs, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) {
      log.warning("Cannot empty {runs}: {error}", { runs, error });
    }
  }
}

/** Builds the command and environment, and writes the files of the agent. Removes a separate directory on failure. */
function prepareProcess(
  setup: AgentSetup,
  run: EngineRun,
  request: TurnRequest,
  place: ProcessPlace,
): { order: Order; command: AgentCommand; env: Record<string, string> } {
  const { adapter: { open }, config } = setup;
  if (!place.stays || open === undefined) {
    const order = buildOrder(setup, run, request);
    const command = setup.adapter.buildCommand(order);
    writeFiles(command, run.stateDir);
    return { order, command, env: buildEnvironment(config, run, command) };
  }
  const { id, dir } = place;
  const own = { ...run, runId: id, runDir: dir, env: adaptEnvironment(dir, id, run) };
  const order = buildOrder(setup, own, request);
  const command = open.buildCommand(order);
  try {
    Deno.mkdirSync(join(dir, "tmp"), { recursive: true, mode: 0o700 });
    writeFiles(command, run.stateDir);
    // The agent's tool servers start with it, and read these files.
    writeRunFiles(dir, setup, run);
  } catch (error) {
    void Deno.remove(dir, { recursive: true }).catch(() => {});
    throw error;
  }
  const env = buildEnvironment(config, own, command);
  // Removes the operator's values, too, because the values change with each turn.
  for (const name of RUN_VARIABLES) delete env[name];
  return { order, command, env: { ...env, BASH_ENV: join(dir, "turn.sh") } };
}

/** Adapts the box of a run to a process, whose directory may be another one. The agent cannot change the files of its command. */
function buildProcessBox(run: EngineRun, dir: string, { files = [] }: AgentCommand): Box | null {
  if (run.box === null) return null;
  // The box has real paths, and the run may have others.
  const { runDir, stateDir } = run.box;
  const real = join(dirname(runDir), basename(dir));
  const resolve = (path: string) =>
    [[dir, real], [run.stateDir, stateDir]].reduce(
      (found, [from, to]) => from && to && isWithin(found, from) ? to + found.slice(from.length) : found,
      path,
    );
  return { ...run.box, runDir: real, fixed: files.map(({ path }) => resolve(path)) };
}

function adaptEnvironment(dir: string, id: string, { env, runDir }: EngineRun): Record<string, string> {
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !RUN_VARIABLES.includes(name))),
    ...(env.HOME === runDir ? { HOME: dir } : {}),
    TMPDIR: join(dir, "tmp"),
    SVC_RUN_ID: id,
    SVC_TOKEN_FILE: join(dir, "token"),
    SVC_CONTEXT_FILE: join(dir, "context.json"),
    // A bash at level 0 whose stdin is a socket acts as a remote login, and reads another file than BASH_ENV.
    SHLVL: "1",
  };
}

/** Builds a text that is equal for two runs if one process can do both. The service sends everything else with each turn. */
export function buildFingerprint({ config, machine, adapter }: AgentSetup, run: EngineRun): string {
  const { env, workDir, stateDir, extraArgs, runDir, rights, box } = run;
  const program = findProgram(config.command || adapter.program, machine.path);
  const changing = [...RUN_VARIABLES, "SVC_RUN_ID", "SVC_CONTEXT_FILE", "TMPDIR"];
  const kept = Object.entries(env).filter(([name, value]) => !changing.includes(name) && value !== runDir);
  const changedAt = Deno.statSync(program).mtime?.getTime() ?? 0;
  // Includes the identity of the directory, because the path may lead to another directory later.
  const { dev, ino } = Deno.statSync(workDir);
  // A process does not see a file system that is mounted in its directory later.
  const mounts = listMountsBelow(Deno.realPathSync(workDir));
  const place = [workDir, dev, ino, mounts, stateDir];
  // The run directory belongs to one process.
  const boxed = box && { ...box, runDir: "" };
  return JSON.stringify([program, changedAt, ...place, extraArgs, rights, kept.sort(), boxed]);
}

// The agent may have removed `tmp`. If it has removed the whole private directory, the turn fails.
function makeTmp(dir: string): void {
  try {
    Deno.mkdirSync(join(dir, "tmp"), { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

function writeRunFiles(dir: string, { config }: AgentSetup, { env }: EngineRun): void {
  const lines = RUN_VARIABLES.map((name) => `export ${name}=${quoteShellWord(env[name] ?? "")}\n`);
  const own = config.env.BASH_ENV ?? env.BASH_ENV ?? "";
  if (own !== "") {
    // Bash expands variables in BASH_ENV, and ignores a missing file.
    const file = `"${own.replaceAll('"', '\\"')}"`;
    lines.push(`[ ! -r ${file} ] || . ${file}\n`);
  }
  replacePlain(join(dir, "turn.sh"), lines.join(""));
  replacePlain(join(dir, "token"), env.SVC_TOKEN ?? "");
  replacePlain(join(dir, "context.json"), Deno.readTextFileSync(env.SVC_CONTEXT_FILE ?? ""));
}

// The process is running. It cannot turn these paths into paths to other places.
function giveRunFiles(dir: string, user: BoxUser | null): void {
  if (user === null) return;
  for (const name of ["tmp", "turn.sh", "token", "context.json"]) giveFile(join(dir, name), user);
}

function readRss(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
