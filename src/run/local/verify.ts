// Checks the work of a run after the agent has finished, and sends failures back to the agent (contract 13).
import { stripEscapes } from "../../engine/protocol/transcript.ts";
import type { Verify, VerifyResult } from "../../domain/work/command.ts";
import { addUsage } from "../../domain/work/execution.ts";
import type { EngineOutcome } from "../../engine/engine.ts";
import type { RunLog } from "../../engine/process/run_log.ts";
import { addShell, type CommandContext, runCommand } from "./command.ts";

interface CheckContext extends CommandContext {
  log: RunLog;
  /** Continues the engine session of `before` with these words. */
  again: (words: string, before: EngineOutcome) => Promise<EngineOutcome>;
}

type CheckedOutcome = EngineOutcome & { verify: VerifyResult };

/**
 * Checks the work after the engine has succeeded. A failed check goes back to the agent in the same session, `attempts` times. Then the
 * run fails with `verify_failed` (contract 13, reliability CMD-1).
 */
export async function verifyRun(
  run: CheckContext,
  verify: Verify,
  first: EngineOutcome,
): Promise<CheckedOutcome> {
  let outcome = first;
  for (let attempts = 1;; attempts++) {
    if (outcome.status !== "completed") {
      return { ...outcome, verify: { status: null, attempts: attempts - 1 } };
    }
    const { code, words, tail } = await runCheck(run, verify);
    run.log.line(`[check ${attempts}: ${words}]`);
    if (run.signal.aborted) {
      const ended = { status: "failed" as const, failure: "cancelled" as const, error: "the run was ended" };
      return { ...outcome, ...ended, verify: { status: null, attempts } };
    }
    if (code === 0) return { ...outcome, verify: { status: "passed", attempts } };
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
    const next = await run.again(formatFailure(verify, words, tail), outcome);
    outcome = { ...next, engineUse: "acted", usage: addUsage(outcome.usage, next.usage) };
  }
}

function formatFailure({ command }: Verify, words: string, tail: string): string {
  return `Your work was checked with ${JSON.stringify(command)}, and the check failed: ${words}.\n` +
    `The end of its output:\n\n${
      stripEscapes(tail)
    }\n\nFix this. Your work is checked again when you are done.`;
}

async function runCheck(run: CheckContext, { command, timeout_ms }: Verify) {
  const { engine, log } = run;
  const words = addShell(engine, command);
  log.line(`[checking the work: ${JSON.stringify(words)}]`);
  return await runCommand(run, { words, timeout_ms, onOutput: (_stream, chunk) => log.write(chunk) });
}
