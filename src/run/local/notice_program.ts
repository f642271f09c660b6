// Runs the notice program of the configuration (contract 11).
import { createLogger } from "../../base/log.ts";
import { detectIsolation } from "../../engine/process/isolation.ts";
import { findProgram, runProcess } from "../../engine/process/process.ts";
import { readProgramEnv } from "../program_env.ts";

const log = createLogger("notices");
const TIMEOUT_MS = 30_000;
const STOP_GRACE_MS = 1_000;
const OUTPUT_MAX_CHARACTERS = 500;

/** Runs a program with `body` on its standard input for at most 30 s. Never throws: failures go to the log. */
export async function runNoticeProgram(
  [name = "", ...args]: readonly string[],
  body: string,
  umask: number,
  signal: AbortSignal,
): Promise<void> {
  const env = readProgramEnv();
  const runId = crypto.randomUUID();
  let output = "";
  try {
    const { reason, code } = await runProcess({
      runId,
      command: findProgram(name, env.PATH ?? ""),
      args,
      cwd: Deno.cwd(),
      env: { ...env, SVC_RUN_ID: runId },
      stdin: body,
      isolation: await detectIsolation(),
      box: null,
      umask,
      timeoutMs: TIMEOUT_MS,
      stopGraceMs: STOP_GRACE_MS,
      signal,
      onOutput: (_stream, chunk) => {
        output = (output + new TextDecoder().decode(chunk)).slice(-OUTPUT_MAX_CHARACTERS);
      },
    });
    if (reason === "exited" && code === 0) return;
    const words = reason === "exited" ? `exit code ${code}` : `it did not end (${reason})`;
    log.warning("The program {name} of a notice failed: {words}; {output}", { name, words, output });
  } catch (error) {
    log.warning("Cannot start the program {name} of a notice: {error}", { name, error });
  }
}
