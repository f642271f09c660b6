import { dirname, join } from "node:path";
import { concatBytes } from "../base/bytes.ts";
import { createId } from "../base/id.ts";
import { UnsafePathError } from "../base/files/open_directory.ts";
import { removePlain, replacePlain } from "../base/files/plain_file.ts";
import { refuseForeignSettings } from "./foreign_settings.ts";
import type { EngineRun } from "./engine.ts";
import {
  type AgentSetup,
  buildCommand,
  buildEnvironment,
  buildOrder,
  type TurnRequest,
  writeFiles,
} from "./launch.ts";
import { buildProcessBox } from "./process_box.ts";
import { detectIsolation, findTree, type Isolation } from "./process/isolation.ts";
import { findProgram, type ProcessEnd, runProcess, SpawnError } from "./process/process.ts";
import type { ProcessInput } from "./process/process_input.ts";
import {
  type AgentCommand,
  type AgentEvent,
  type Dialogue,
  GATEWAY_KEY,
  type Line,
  type Link,
  type Order,
} from "./protocol/adapter.ts";
import { parseObject } from "./protocol/json_fields.ts";
import {
  getInputDir,
  getTempDir,
  makeRunDir,
  placeInRunDir,
  removeRunDir,
  restoreTempDir,
} from "./run_dir.ts";
import { addSkillIndex, placeSkills } from "./process/skill_files.ts";
import { giveRunFiles, RUN_VARIABLES, writeRunFiles } from "./turn_files.ts";

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
  /** The description of the service's tools for a spare process, which starts without a run. null: a run starts it. */
  tools: string | null;
  /** The key for gateways of a process that stays open, or null if its engine uses none. */
  gatewayKey: string | null;
}

/** How long a process runs: for one turn, or for several. A spare process gets its first turn later. */
type ProcessForm = Pick<ProcessPlace, "stays" | "tools">;

const CLOSED_WITHIN_MS = 3_000;
// Far beyond what an agent writes before its first turn.
const EARLY_MAX_BYTES = 1024 * 1024;
const NEWLINE = 10;
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
  /** Whether a spare process has opened its session. */
  isReady = false;
  /** Called when the agent works between turns, without a request, and when a spare process cannot open its session. */
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
  /** Output of a spare process before its first turn that is not a whole line yet. */
  #early: Uint8Array = new Uint8Array();

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
      this.#assignGatewayKey(null);
      this.#dialogue?.close();
      // Awaited, because the service may exit as soon as its processes have ended.
      if (this.stays) await removeRunDir(place.dir);
    });
    // The turn reports a failed start. Without this handler the rejection would crash the service.
    this.ended.catch(() => {});
  }

  /** Starts a process for this run, or a spare one for a run of the same kind. Throws SpawnError. */
  static async start(
    setup: AgentSetup,
    run: EngineRun,
    request: TurnRequest,
    { stays, tools }: ProcessForm,
  ): Promise<AgentProcess> {
    const { config, machine, adapter } = setup;
    const program = findProgram(config.command || adapter.program, machine.path);
    const id = stays ? createId() : run.runId;
    const gatewayKey = stays && config.gateway !== undefined ? machine.gatewayKeys.create() : null;
    const place = { id, dir: stays ? join(dirname(run.runDir), id) : run.runDir, stays, tools, gatewayKey };
    const { order, command, env } = prepareProcess(setup, run, request, place);
    await placeSkills(setup, run.skills, place.dir).catch((error) => {
      if (stays) void removeRunDir(place.dir);
      throw error;
    });
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
          ? addSkills(setup, run, place, request).prompt
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
    if (tools !== null) process.#dialogue?.prepare?.();
    return process;
  }

  /** Whether the process has ended or is being ended. */
  get isLeaving(): boolean {
    return this.hasEnded || this.#ending.signal.aborted;
  }

  /** Whether the process waited for its first turn, or between two turns. */
  get hasWaited(): boolean {
    return this.turns > 0 || this.#place.tools !== null;
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
      restoreTempDir(this.#place.dir);
      writeRunFiles(this.#place.dir, run);
      giveRunFiles(this.#place.dir, run.box?.user ?? null);
    }
    this.#assignGatewayKey(run);
    if (this.#early.length > 0) listener.output("stdout", this.#early);
    this.#early = new Uint8Array();
    const turn = addSkills(this.#setup, run, this.#place, request);
    // The files of a process that stays open are in its own directory.
    const own = { ...run, runDir: this.#place.dir };
    this.#dialogue?.turn(buildOrder(this.#setup, own, turn), (events) => this.#listener?.take(events));
  }

  parse(line: Line): AgentEvent[] {
    return this.#dialogue === null ? this.#setup.adapter.parseLine(line) : this.#dialogue.hear(line);
  }

  /** Whether the running turn can take further words. */
  get canSteer(): boolean {
    return this.#dialogue?.steer !== undefined;
  }

  /** Sends words into the running turn. The event `steered` answers. */
  steer(id: string, words: string): void {
    this.#dialogue?.steer?.(id, words);
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
    this.#assignGatewayKey(null);
    if (!this.stays) return;
    for (const name of ["token", "turn.sh"]) {
      try {
        const { dir } = this.#place;
        removePlain(placeInRunDir(join(getInputDir(dir), name), dir));
      } catch {
        // The directory is removed when the process ends.
      }
    }
  }

  // Each run that the key represents masks it.
  #assignGatewayKey(run: EngineRun | null): void {
    const { gatewayKey } = this.#place;
    if (gatewayKey === null) return;
    for (const log of [run?.log, run?.events]) log?.mask(gatewayKey);
    const { gatewayKeys } = this.#setup.machine;
    if (run === null) gatewayKeys.revoke(gatewayKey);
    else gatewayKeys.assign(gatewayKey, run.env.SVC_TOKEN ?? "");
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
    else if (this.turns === 0 && stream === "stdout") this.#hearEarly(chunk);
  }

  // A spare process opens its session before its first turn.
  #hearEarly(chunk: Uint8Array): void {
    const text = concatBytes([this.#early, chunk]);
    const end = text.lastIndexOf(NEWLINE) + 1;
    this.#early = text.slice(end);
    const lines = new TextDecoder().decode(text.subarray(0, end)).split("\n");
    const events = lines.flatMap((line) => line.startsWith("{") ? this.parse(parseObject(line) ?? {}) : []);
    this.isReady ||= events.some(({ kind }) => kind === "session");
    if (events.some(({ kind }) => kind === "done") || this.#early.length > EARLY_MAX_BYTES) this.onWork();
  }
}

/** Builds the command and environment, and writes the files of the agent. Removes a separate directory on failure. */
function prepareProcess(
  setup: AgentSetup,
  run: EngineRun,
  request: TurnRequest,
  place: ProcessPlace,
): { order: Order; command: AgentCommand; env: Record<string, string> } {
  const { adapter: { open } } = setup;
  refuseForeignSettings(setup, buildOrder(setup, run, request));
  if (!place.stays || open === undefined) {
    const order = buildOrder(setup, run, request);
    const command = buildCommand(setup.adapter, order, run);
    writeFiles(command, run);
    return { order, command, env: buildEnvironment(run, command) };
  }
  const { id, dir, tools } = place;
  const own = { ...run, runId: id, runDir: dir, env: adaptEnvironment(place, run) };
  // An agent that stays open reaches them through `svc mcp`.
  if (own.tools !== null) own.tools = { ...own.tools, token: "" };
  const order = buildOrder(setup, own, request);
  const command = buildCommand(open, order, own);
  try {
    makeRunDir(dir);
    writeFiles(command, own);
    // The agent's tool servers start with it, and read these files.
    if (tools === null) writeRunFiles(dir, run);
    else replacePlain(placeInRunDir(getToolsPath(dir), dir), tools);
  } catch (error) {
    void removeRunDir(dir);
    throw error instanceof UnsafePathError ? new SpawnError(error.message, "isolation") : error;
  }
  const env = buildEnvironment(own, command);
  // Removes the operator's values, too, because the values change with each turn.
  for (const name of RUN_VARIABLES) delete env[name];
  return { order, command, env: { ...env, BASH_ENV: join(getInputDir(dir), "turn.sh") } };
}

/** Lists the skills in the prompt of an agent that does not find them. */
function addSkills(
  { adapter, config }: AgentSetup,
  { skills }: EngineRun,
  { dir, stays }: ProcessPlace,
  request: TurnRequest,
): TurnRequest {
  if (adapter.findsSkills?.(config.permissions, stays)) return request;
  const place = { runDir: dir, folder: adapter.skillsFolder };
  return { ...request, prompt: addSkillIndex(request.prompt, skills, place) };
}

function getToolsPath(dir: string): string {
  return join(getInputDir(dir), "tools.json");
}

function adaptEnvironment(
  { dir, id, tools, gatewayKey }: ProcessPlace,
  { env, runDir }: EngineRun,
): Record<string, string> {
  return {
    ...Object.fromEntries(Object.entries(env).filter(([name]) => !RUN_VARIABLES.includes(name))),
    ...(env.HOME === runDir ? { HOME: dir } : {}),
    ...(gatewayKey === null ? {} : { [GATEWAY_KEY]: gatewayKey }),
    TMPDIR: getTempDir(dir),
    SVC_RUN_ID: id,
    SVC_TOKEN_FILE: join(getInputDir(dir), "token"),
    ...(tools === null ? {} : { SVC_TOOLS_FILE: getToolsPath(dir) }),
    SVC_CONTEXT_FILE: join(getInputDir(dir), "context.json"),
    // A bash at level 0 whose stdin is a socket acts as a remote login, and reads another file than BASH_ENV.
    SHLVL: "1",
  };
}

function readRss(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
