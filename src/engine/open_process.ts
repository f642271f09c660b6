import { dirname, join } from "node:path";
import { newId } from "../base/id.ts";
import { replacePlain } from "../base/plain_file.ts";
import { logger } from "../base/log.ts";
import { shellWord } from "../base/shell.ts";
import type { AgentCommand, AgentEvent, Line, OpenDialogue, OpenTalk, Order } from "./protocol/adapter.ts";
import type { EngineRun } from "./engine.ts";
import { detectIsolation, type Isolation, sweep, treeOf } from "./process/isolation.ts";
import { type AgentParts, environmentOf, orderOf, type Start, writeFiles } from "./launch.ts";
import type { ProcessInput } from "./process/process_input.ts";
import { findProgram, type ProcessEnd, runProcess } from "./process/process.ts";

const log = logger("engine");

/** An engine that keeps processes open. */
export interface OpenParts extends AgentParts {
  open: OpenTalk;
}

/** Who listens to a process during a turn. */
export interface Listener {
  output(stream: "stdout" | "stderr", chunk: Uint8Array): void;
  /** Gets events that come without a line. */
  take(events: AgentEvent[]): void;
}

// These are those of one run; a process that stays has none of them, and each bash that it starts has those of the run that goes on.
const OF_ONE_RUN = ["SVC_TOKEN", "SVC_EXECUTION_ID", "SVC_TASK_ID", "SVC_MESSAGE_ID"];
// The pool ends it before this.
const NO_LIMIT_MS = 2_000_000_000;
const CLOSED_WITHIN_MS = 3_000;
const STRAY_AGAIN_MS = 100;

/** An agent's process that stays open between turns, with a private directory and a mark of its own (contract 19). */
export class OpenProcess {
  readonly startedAt = performance.now();
  readonly ended: Promise<ProcessEnd>;
  /** How many turns it has begun. */
  turns = 0;
  pid = 0;
  isOver = false;
  /** Called when it begins to work of its own between turns. */
  onWork = () => {};
  readonly #id: string;
  readonly #dir: string;
  readonly #ending = new AbortController();
  readonly #parts: OpenParts;
  readonly #isolation: Isolation;
  #input: ProcessInput | null = null;
  #dialogue: OpenDialogue | null = null;
  #listener: Listener | null = null;
  /** The processes that were there before its first turn did anything. */
  #own: Promise<Set<number>> | null = null;

  private constructor(
    parts: OpenParts,
    { id, dir, isolation }: { id: string; dir: string; isolation: Isolation },
    run: (process: OpenProcess) => Promise<ProcessEnd>,
  ) {
    this.#parts = parts;
    this.#isolation = isolation;
    this.#id = id;
    this.#dir = dir;
    this.ended = run(this).finally(async () => {
      this.isOver = true;
      this.#dialogue?.close();
      // Who waits for its end ends a service, too, perhaps.
      await Deno.remove(dir, { recursive: true }).catch(() => {});
    });
    // Whoever waits for a turn hears of it, too.
    this.ended.catch(() => {});
  }

  /** Starts it as this run asks for. Throws SpawnError. */
  static async start(parts: OpenParts, run: EngineRun, start: Start): Promise<OpenProcess> {
    const { config, machine, adapter, open } = parts;
    const program = findProgram(config.command || adapter.program, machine.path);
    const id = newId();
    const dir = join(dirname(run.runDir), id);
    const { order, command, env } = prepared(parts, run, start, { id, dir });
    const isolation = await detectIsolation();
    const process = new OpenProcess(parts, { id, dir, isolation }, (process) =>
      runProcess({
        runId: id,
        command: program,
        args: command.args,
        cwd: run.workDir,
        env,
        stdin: (input) => {
          process.#input = input;
          process.#dialogue = open.begin(order, (text) => input.write(text));
        },
        isolation,
        umask: machine.umask,
        timeoutMs: NO_LIMIT_MS,
        idleTimeoutMs: NO_LIMIT_MS,
        stopGraceMs: machine.stopGraceMs,
        signal: process.#ending.signal,
        waitedMs: () => 0,
        onStart: (pid) => process.pid = pid,
        onOutput: (stream, chunk) => process.#heard(stream, chunk),
      }));
    // Nothing else is waited for: it has been started, or could not be.
    if (process.pid === 0) await process.ended;
    return process;
  }

  /** Whether it has ended, or is being ended. */
  get isLeaving(): boolean {
    return this.isOver || this.#ending.signal.aborted;
  }

  /** Begins a turn: its tools get the token and the context of this run, and what it says goes to `listener`. */
  begin(run: EngineRun, start: Start, listener: Listener): void {
    this.turns++;
    this.#listener = listener;
    makeTmp(this.#dir);
    equip(this.#dir, this.#parts, run);
    this.#dialogue?.turn(orderOf(this.#parts, run, start), (events) => this.#listener?.take(events));
  }

  /** What a line of it means. */
  hear(line: Line): AgentEvent[] {
    return this.#dialogue?.hear(line) ?? [];
  }

  /** Ends the turn, and leaves the process. */
  interrupt(): void {
    this.#dialogue?.interrupt();
  }

  /** Its session is there: what runs by now is its own, and no work of a turn. */
  settled(): void {
    this.#own ??= this.#tree().then((pids) => new Set(pids), () => new Set());
  }

  /** The turn is over: nobody listens, and its token is gone. */
  rest(): void {
    this.#listener = null;
    for (const name of ["token", "turn.sh"]) {
      try {
        Deno.removeSync(join(this.#dir, name));
      } catch {
        // The directory goes with the process.
      }
    }
  }

  /** Ends it at once, with all that it started. Resolves when it has ended. */
  async end(): Promise<void> {
    this.#ending.abort();
    await this.ended.catch(() => {});
  }

  /** Lets it end by itself, for a moment. Resolves when it has ended. */
  async close(): Promise<void> {
    this.#input?.close();
    const timer = setTimeout(() => this.#ending.abort(), CLOSED_WITHIN_MS);
    await this.ended.catch(() => {});
    clearTimeout(timer);
  }

  /** Whether something goes on that a turn has started: without this, it would have ended with the run. */
  async hasStrays(): Promise<boolean> {
    if (await this.#strays() === 0) return false;
    await new Promise((resolve) => setTimeout(resolve, STRAY_AGAIN_MS));
    return await this.#strays() > 0;
  }

  /** The memory of it and of what it started, in bytes; 0 where that cannot be read. */
  async rss(): Promise<number> {
    const pids = await this.#tree();
    return pids.reduce((sum, pid) => sum + rssOf(pid), 0);
  }

  async #strays(): Promise<number> {
    const own = await this.#own ?? new Set();
    return (await this.#tree()).filter((pid) => !own.has(pid)).length;
  }

  #tree(): Promise<number[]> {
    return treeOf(this.#isolation, this.pid, this.#id);
  }

  #heard(stream: "stdout" | "stderr", chunk: Uint8Array): void {
    if (this.#listener !== null) this.#listener.output(stream, chunk);
    else if (this.#parts.open.isWork?.(new TextDecoder().decode(chunk))) this.onWork();
  }
}

/**
 * Ends the open processes that a service before this one has left, and removes `runs`, the folder of their directories: each is called
 * like the mark of its process. Never throws.
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

/** What it is started with, and the files that it finds. Leaves nothing when that fails. */
function prepared(
  parts: OpenParts,
  run: EngineRun,
  start: Start,
  { id, dir }: { id: string; dir: string },
): { order: Order; command: AgentCommand; env: Record<string, string> } {
  const own = { ...run, runId: id, runDir: dir, env: environmentIn(dir, id, run) };
  const order = orderOf(parts, own, start);
  const command = parts.open.command(order);
  try {
    Deno.mkdirSync(join(dir, "tmp"), { recursive: true, mode: 0o700 });
    writeFiles(command, run.stateDir);
    // Its tool servers start with it.
    equip(dir, parts, run);
  } catch (error) {
    void Deno.remove(dir, { recursive: true }).catch(() => {});
    throw error;
  }
  const env = environmentOf(parts.config, own, command);
  // Also where the operator sets them: a process that stays has what comes with each turn.
  for (const name of OF_ONE_RUN) delete env[name];
  return { order, command, env: { ...env, BASH_ENV: turnFile(dir) } };
}

function turnFile(dir: string): string {
  return join(dir, "turn.sh");
}

function environmentIn(dir: string, id: string, { env, runDir }: EngineRun): Record<string, string> {
  const kept = Object.entries(env).filter(([name]) => !OF_ONE_RUN.includes(name));
  return {
    ...Object.fromEntries(kept),
    ...(env.HOME === runDir ? { HOME: dir } : {}),
    TMPDIR: join(dir, "tmp"),
    SVC_RUN_ID: id,
    SVC_TOKEN_FILE: join(dir, "token"),
    SVC_CONTEXT_FILE: join(dir, "context.json"),
    // A first bash whose stdin is a socket takes itself for that of a remote login, and reads another file instead.
    SHLVL: "1",
  };
}

/** What must be the same for a process to go on with this run: the rest comes with each turn. */
export function formOf({ config, machine, adapter }: AgentParts, run: EngineRun): string {
  const { env, workDir, stateDir, extraArgs, runDir, rights } = run;
  const program = findProgram(config.command || adapter.program, machine.path);
  const changing = [...OF_ONE_RUN, "SVC_RUN_ID", "SVC_CONTEXT_FILE", "TMPDIR"];
  const kept = Object.entries(env).filter(([name, value]) => !changing.includes(name) && value !== runDir);
  const changedAt = Deno.statSync(program).mtime?.getTime() ?? 0;
  // Behind the same name there may be another directory by now.
  const { dev, ino } = Deno.statSync(workDir);
  return JSON.stringify([program, changedAt, workDir, dev, ino, stateDir, extraArgs, rights, kept.sort()]);
}

// Its last turn may have removed it. Without the directory itself there is no turn.
function makeTmp(dir: string): void {
  try {
    Deno.mkdirSync(join(dir, "tmp"), { mode: 0o700 });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

function equip(dir: string, { config }: OpenParts, { env }: EngineRun): void {
  const words = OF_ONE_RUN.map((name) => `export ${name}=${shellWord(env[name] ?? "")}\n`);
  const own = config.env.BASH_ENV ?? env.BASH_ENV ?? "";
  if (own !== "") {
    // Bash expands this variable, and a file that is not there is no error.
    const file = `"${own.replaceAll('"', '\\"')}"`;
    words.push(`[ ! -r ${file} ] || . ${file}\n`);
  }
  replacePlain(turnFile(dir), words.join(""));
  replacePlain(join(dir, "token"), env.SVC_TOKEN ?? "");
  replacePlain(join(dir, "context.json"), Deno.readTextFileSync(env.SVC_CONTEXT_FILE ?? ""));
}

function rssOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
