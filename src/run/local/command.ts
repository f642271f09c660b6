// A command of a run: its gate before it, and its check after it (contract 13, contract 15)
import { resolve } from "node:path";
import { joined } from "../../base/bytes.ts";
import type { Engine } from "../../engine/engine.ts";
import { detectIsolation } from "../../engine/process/isolation.ts";
import { findProgram, runProcess, SpawnError } from "../../engine/process/process.ts";
import { holdsKey } from "../secrets.ts";

/** Where a command runs. */
export interface CommandPlace {
  runId: string;
  engine: Engine;
  workDir: string;
  /** The run's environment, without its token and its keys. */
  env: Record<string, string>;
  umask: number;
  stopGraceMs: number;
  signal: AbortSignal;
  /** Called when it has started. */
  onStart?: (pid: number) => void;
}

/** A command, how long it may take, and who hears what it prints. */
interface CommandRequest {
  /** With its `shell` prefix, see withShell(). */
  words: string[];
  timeout_ms: number;
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
}

/** How a command ended. */
interface CommandEnd {
  /** null: it did not come to one. */
  code: number | null;
  /** How it ended, for people. */
  words: string;
  /** The last of its output. */
  tail: string;
}

const TAIL_BYTES = 8 * 1024;

/** The words of a command, behind what its engine says that commands are run with. */
export function withShell({ config }: Engine, command: string[]): string[] {
  return [...(config.shell ?? []), ...command];
}

/**
 * Runs a command to its end, with everything that it starts, as a run is run: in its isolation and marked as its own (contract 13).
 * Its output is read to the end, however much there is. A program that is missing is an end, too.
 */
export async function runCommand(
  { runId, workDir, env, umask, stopGraceMs, signal, onStart = () => {} }: CommandPlace,
  { words: [program = "", ...args], timeout_ms, onOutput }: CommandRequest,
): Promise<CommandEnd> {
  let tail: Uint8Array = new Uint8Array();
  try {
    const end = await runProcess({
      runId,
      command: findProgram(program.includes("/") ? resolve(workDir, program) : program, env.PATH ?? ""),
      args,
      cwd: workDir,
      env,
      stdin: "",
      isolation: await detectIsolation(),
      umask,
      timeoutMs: timeout_ms,
      idleTimeoutMs: timeout_ms,
      waitedMs: () => 0,
      stopGraceMs,
      signal,
      onStart,
      onOutput(stream, chunk) {
        tail = joined([tail, chunk.subarray(-TAIL_BYTES)]).slice(-TAIL_BYTES);
        onOutput(stream, chunk);
      },
    });
    const code = end.reason === "exited" ? end.code : null;
    const late = end.reason === "timeout" || end.reason === "idle_timeout";
    const words = late ? `it did not end within ${timeout_ms / 1000} s` : `exit code ${end.code}`;
    return { code, words, tail: textOf(tail) };
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error;
    return { code: null, words: `it could not be started: ${error.message}`, tail: "" };
  }
}

/** Output as text that can be stored. */
export function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).replaceAll("\0", "\ufffd");
}

/** An environment for commands: that of a run without its token and keys (contract 13). */
export function withoutKeys(
  env: Record<string, string>,
  secrets: readonly string[],
  { runId, workDir }: { runId: string; workDir: string },
): Record<string, string> {
  const kept = Object.entries(env).filter(([name, value]) =>
    !holdsKey(name, value) && !secrets.includes(value)
  );
  const plain = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: workDir };
  return { ...plain, ...Object.fromEntries(kept), SVC_RUN_ID: runId };
}
