import { join } from "node:path";
import { readPlain, readPlainEnd } from "../base/plain_file.ts";
import { USAGE_UNKNOWN } from "../domain/execution.ts";
import type { Adapter, AgentEvent, Dialogue, Line, ProviderWindow } from "./protocol/adapter.ts";
import type { EngineRun } from "./engine.ts";
import { detectIsolation } from "./process/isolation.ts";
import { type AgentParts, environmentOf, orderOf, type Start, writeFiles } from "./launch.ts";
import { findProgram, type ProcessEnd, runProcess } from "./process/process.ts";
import { Reading } from "./protocol/output_parser.ts";
import { Watch } from "./early_exit.ts";

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

/** Runs one process of an agent to its end. Throws SpawnError when it cannot be started. */
export async function runAgentProcess(parts: AgentParts, run: EngineRun, start: Start): Promise<Ran> {
  const { config, machine, adapter } = parts;
  const program = findProgram(config.command || adapter.program, machine.path);
  const order = orderOf(parts, run, start);
  const command = adapter.command(order);
  writeFiles(command, run.stateDir);
  const watch = new Watch(run, start);
  let dialogue: Dialogue | undefined;
  const hear = adapter.converse && ((line: Line) => dialogue?.hear(line) ?? []);
  const reading = readingOf(adapter, run, start, { watch, hear });
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
  reading.end(usageFile === null ? null : usageIn(usageFile));
  const windows = windowsOf(adapter, run, reading.session || start.sessionId);
  if (windows.length > 0) run.onWindows(windows);
  return { start, end, reading, finished: end.reason === "exited" || watch.left, strayed: watch.strayed };
}

/** Reads what an agent says in a run, and passes on what is told while it goes on. */
export function readingOf(
  adapter: Adapter,
  run: EngineRun,
  start: Start,
  { watch, hear }: { watch: Watch; hear?: ((line: Line) => AgentEvent[]) | undefined },
): Reading {
  const reading: Reading = new Reading({
    adapter,
    hear,
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
  return reading;
}

const TAIL_BYTES = 64 * 1024;
const USAGE_FILE_MAX_BYTES = 1024 * 1024;

// What is not as its engine writes it says nothing.
function usageIn(file: string): string | null {
  try {
    return readPlain(file, USAGE_FILE_MAX_BYTES);
  } catch {
    return null;
  }
}

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
  return readPlainEnd(path, TAIL_BYTES)?.text ?? "";
}
