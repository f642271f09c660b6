// Runs the commands of a run: its gate and its check (contract 13, contract 15).
import { resolve } from "node:path";
import { concatBytes } from "../../base/bytes.ts";
import type { Engine } from "../../engine/engine.ts";
import { detectIsolation } from "../../engine/process/isolation.ts";
import type { Box } from "../../engine/process/box.ts";
import { findProgram, runProcess, SpawnError } from "../../engine/process/process.ts";
import { findProgramFiles } from "../../engine/process/program_files.ts";
import { isWithin } from "../../base/paths.ts";
import { holdsKey } from "../secrets.ts";

export interface CommandContext {
  runId: string;
  engine: Engine;
  workDir: string;
  box: Box | null;
  /** The run's environment without its token and keys. */
  env: Record<string, string>;
  umask: number;
  stopGraceMs: number;
  signal: AbortSignal;
  /** Called after the start. */
  onStart?: (pid: number) => void;
}

/** A command with its time limit and output listener. */
interface CommandRequest {
  /** Includes the `shell` prefix, see addShell(). */
  words: string[];
  timeout_ms: number;
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
}

interface CommandEnd {
  /** null when the command was ended. */
  code: number | null;
  /** The outcome for people. */
  words: string;
  /** The last part of the output. */
  tail: string;
}

const TAIL_BYTES = 8 * 1024;

/** Adds the engine's `shell` prefix to a command. */
export function addShell({ config }: Engine, command: string[]): string[] {
  return [...(config.shell ?? []), ...command];
}

/**
 * Runs a command to its end, with the isolation and the marks of its run (contract 13). Reads all its output, whatever the size. If the
 * program is missing, returns an outcome instead of throwing. Throws SpawnError with `failure: isolation`.
 */
export async function runCommand(
  { runId, workDir, box, env, umask, stopGraceMs, signal, onStart }: CommandContext,
  { words: [program = "", ...args], timeout_ms, onOutput }: CommandRequest,
): Promise<CommandEnd> {
  let tail: Uint8Array = new Uint8Array();
  try {
    const command = findProgram(program.includes("/") ? resolve(workDir, program) : program, env.PATH ?? "");
    const end = await runProcess({
      runId,
      command,
      args,
      cwd: workDir,
      env,
      stdin: "",
      isolation: await detectIsolation(),
      box: box && addProgram(box, command, env.PATH ?? ""),
      umask,
      timeoutMs: timeout_ms,
      stopGraceMs,
      signal,
      ...(onStart === undefined ? {} : { onStart }),
      onOutput(stream, chunk) {
        tail = concatBytes([tail, chunk.subarray(-TAIL_BYTES)]).slice(-TAIL_BYTES);
        onOutput(stream, chunk);
      },
    });
    const code = end.reason === "exited" ? end.code : null;
    const words = end.reason === "timeout"
      ? `it did not end within ${timeout_ms / 1000} s`
      : `exit code ${end.code}`;
    return { code, words, tail: decodeText(tail) };
  } catch (error) {
    if (!(error instanceof SpawnError) || error.failure === "isolation") throw error;
    return { code: null, words: `it could not be started: ${error.message}`, tail: "" };
  }
}

// The operator names the program, so it is visible like the engine's.
function addProgram(box: Box, command: string, path: string): Box {
  if (isWithin(command, box.workDir)) return box;
  const { read, links } = findProgramFiles(command, path);
  return { ...box, read: [...box.read, ...read], links: [...box.links, ...links] };
}

/** Decodes output as text that can be stored. */
export function decodeText(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).replaceAll("\0", "\ufffd");
}

/** Removes the token and keys from a run's environment, for a command of the run (contract 13). */
export function removeKeys(
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
