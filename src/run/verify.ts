// The check of a run's work: it runs after the agent says that it is done, and what it says goes back to the agent (contract 13)
import { join } from "node:path";
import { joined } from "../base/bytes.ts";
import type { Verified, Verify } from "../domain/command.ts";
import type { Usage } from "../domain/execution.ts";
import type { Engine, EngineOutcome } from "../engine/engine.ts";
import { detectIsolation } from "../engine/isolation.ts";
import { findProgram, runProcess, SpawnError } from "../engine/process.ts";
import type { RunLog } from "../engine/run_log.ts";

/** What a check needs of the run that it belongs to. */
interface CheckedRun {
  runId: string;
  engine: Engine;
  workDir: string;
  /** The run's environment, without its token and its keys. */
  env: Record<string, string>;
  umask: number;
  stopGraceMs: number;
  log: RunLog;
  signal: AbortSignal;
  /** Goes on in the engine's session of `before` with these words. */
  again: (words: string, before: EngineOutcome) => Promise<EngineOutcome>;
}

/** The outcome of a run whose work was checked. */
type VerifiedOutcome = EngineOutcome & { verify: Verified };

/**
 * Checks the work after the engine succeeded. A failed check goes back to the agent in the same session, `attempts` times; then
 * the run has failed with `verify_failed` (contract 13, reliability CMD-1).
 */
export async function verified(
  run: CheckedRun,
  verify: Verify,
  first: EngineOutcome,
): Promise<VerifiedOutcome> {
  let outcome = first;
  for (let attempts = 1;; attempts++) {
    if (outcome.status !== "completed") {
      return { ...outcome, verify: { status: null, attempts: attempts - 1 } };
    }
    const { passed, words, tail } = await check(run, verify);
    run.log.line(`[check ${attempts}: ${words}]`);
    if (run.signal.aborted) {
      const ended = { status: "failed" as const, failure: "cancelled" as const, error: "the run was ended" };
      return { ...outcome, ...ended, verify: { status: null, attempts } };
    }
    if (passed) return { ...outcome, verify: { status: "passed", attempts } };
    if (attempts > verify.attempts) {
      const error = `the check failed ${attempts} times; the last time ${words}`;
      return {
        ...outcome,
        status: "failed",
        failure: "verify_failed",
        error,
        verify: { status: "failed", attempts },
      };
    }
    run.log.line(`[its output goes back to the agent, ${attempts} of ${verify.attempts}]`);
    const next = await run.again(wordsFor(verify, words, tail), outcome);
    outcome = { ...next, usage: sumOf(outcome.usage, next.usage) };
  }
}

function wordsFor({ command }: Verify, words: string, tail: string): string {
  return `Your work was checked with ${JSON.stringify(command)}, and the check failed: ${words}.\n` +
    `The end of its output:\n\n${tail}\n\nMend this. Your work is checked again when you are done.`;
}

const TAIL_BYTES = 8 * 1024;

/** How a check ended. */
interface Checked {
  passed: boolean;
  words: string;
  /** The last of its output. */
  tail: string;
}

async function check(run: CheckedRun, { command, timeout_ms }: Verify): Promise<Checked> {
  const { runId, engine, workDir, env, umask, stopGraceMs, log, signal } = run;
  const [program = "", ...args] = [...(engine.config.shell ?? []), ...command];
  let tail: Uint8Array = new Uint8Array();
  const text = () => new TextDecoder().decode(tail).replaceAll("\0", "\ufffd");
  log.line(`[checking the work: ${JSON.stringify([program, ...args])}]`);
  try {
    const end = await runProcess({
      runId,
      command: findProgram(program.includes("/") ? join(workDir, program) : program, env.PATH ?? ""),
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
      onStart: () => {},
      onOutput(_stream, chunk) {
        tail = joined([tail, chunk.subarray(-TAIL_BYTES)]).slice(-TAIL_BYTES);
        log.write(chunk);
      },
    });
    const late = end.reason === "timeout" || end.reason === "idle_timeout";
    const words = late ? `it did not end within ${timeout_ms / 1000} s` : `exit code ${end.code}`;
    return { passed: end.reason === "exited" && end.code === 0, words, tail: text() };
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error;
    return { passed: false, words: `it could not be started: ${error.message}`, tail: "" };
  }
}

function sumOf(one: Usage, other: Usage): Usage {
  const sum = (name: keyof Usage) =>
    one[name] === null && other[name] === null ? null : (one[name] ?? 0) + (other[name] ?? 0);
  return {
    input_tokens: sum("input_tokens"),
    output_tokens: sum("output_tokens"),
    cost_usd: sum("cost_usd"),
  };
}

const KEY_NAME = /KEY|TOKEN|SECRET|PASSWORD/i;

/** An environment for commands: that of a run without its token and keys (contract 13). */
export function withoutKeys(
  env: Record<string, string>,
  secrets: readonly string[],
  { runId, workDir }: { runId: string; workDir: string },
): Record<string, string> {
  const kept = Object.entries(env).filter(([name, value]) =>
    !KEY_NAME.test(name) && !secrets.includes(value)
  );
  const plain = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: workDir };
  return { ...plain, ...Object.fromEntries(kept), SVC_RUN_ID: runId };
}
