// Builds the writes at the end of a gate: its task is skipped, fails, or asks its gate again (contract 15).
import { hasConversation } from "../../domain/chat/message.ts";
import { pickRunKeys, type RunKeys } from "../../domain/call/run_identity.ts";
import { getRetryDelayMs } from "../../domain/work/retry_delay.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { record, recordIdle, recordTransition } from "../../store/events/journal.ts";
import { deleteReservation } from "../../store/workers/budget_ledger.ts";
import { insertNotice } from "../../store/chat/notice.ts";
import { dropGate, endGate } from "../../store/work/occurrence.ts";
import { closeCountdown } from "../../store/work/schedule_transitions.ts";
import { retryGate } from "../../store/work/task_transitions.ts";
import type { EndedTask, Rules } from "../ending.ts";
import { buildScheduleEnd, formatGateFailure, formatTitle } from "../schedule_end.ts";

/** Why the task of a gate does not run now. */
export type GateVerdict =
  | { kind: "skip"; exit: number }
  | { kind: "fail"; exit: number | null; error: string }
  /** The schedule's next run replaces this one. */
  | { kind: "replaced" }
  /** The service ended the gate. The schedule counts no failure. */
  | { kind: "again" }
  /** The service died during the gate. `attempt` counts earlier lost runs and gates. */
  | { kind: "lost"; attempt: number };

/** Builds the batch that ends a gate whose task does not run, guarded as endGate() is. */
export function buildGateEnd(
  run: RunKeys,
  verdict: GateVerdict,
  task: EndedTask | null,
  rules: Rules,
  now: number,
): Statement[] {
  const rest = [deleteReservation(run.execution_id), ...buildIdle(run, now)];
  if (verdict.kind === "again") {
    const to = { to: "pending" as const, exit: null, error: "" };
    return [...endGate(run, to, now), retryGate(run.task_id, { dueAt: null, reason: "" }, now), ...rest];
  }
  if (verdict.kind === "lost") {
    const attempt = verdict.attempt + 1;
    if (attempt < rules.maxAttempts) {
      const reason =
        `attempt ${attempt} of ${rules.maxAttempts} was lost with the service, while its gate ran`;
      const again = retryGate(run.task_id, { dueAt: now + getRetryDelayMs(attempt), reason }, now);
      return [...endGate(run, { to: "pending", exit: null, error: reason }, now), again, ...rest];
    }
  }
  return [...finishOrReschedule(run, verdict, task, rules, now), ...rest];
}

function buildIdle({ session_key }: RunKeys, now: number): Statement[] {
  return hasConversation(session_key) ? [recordIdle(now, session_key)] : [];
}

function finishOrReschedule(
  run: RunKeys,
  verdict: Exclude<GateVerdict, { kind: "again" }>,
  task: EndedTask | null,
  { defaultZone }: Rules,
  now: number,
): Statement[] {
  // The task did not run, so there is no execution.
  const keys = { ...pickRunKeys(run), execution_id: "" };
  const { status, failure, error, exit } = describeVerdict(verdict);
  const to = status === "completed" ? "gated" as const : status;
  const report = verdict.kind === "skip"
    ? [record(now, { kind: "task.gated", ...keys, data: { exit } })]
    : verdict.kind === "replaced"
    ? []
    : reportFailure(run, { error, exit }, task, now);
  const words = failure === "" ? error : `${failure}: ${error}`;
  const ended = endGate(run, { to, exit, error: words }, now);
  if (task?.type === "scheduled") {
    const context = {
      keys: { ...keys, execution_id: run.execution_id },
      of: "gate" as const,
      defaultZone,
      now,
    };
    return [...ended, ...report, ...buildScheduleEnd(task, { status: to, failure, error }, context)];
  }
  const reason = failure === "" ? "its gate skipped it" : words;
  const closed = closeCountdown(run.task_id, status, reason, now);
  return [...ended, ...report, ...recordTransition(closed, now, { kind: `task.${status}`, ...keys })];
}

const OUTCOMES = {
  skip: { status: "completed", failure: "", error: "its gate skipped the latest run" },
  replaced: { status: "cancelled", failure: "cancelled", error: "its next run replaced it" },
  lost: { status: "failed", failure: "server_lost", error: "the service died while its gate ran" },
} as const;

function describeVerdict(verdict: Exclude<GateVerdict, { kind: "again" }>) {
  const exit = "exit" in verdict ? verdict.exit : null;
  if (verdict.kind !== "fail") return { ...OUTCOMES[verdict.kind], exit };
  return { status: "failed", failure: "gate_failed", error: verdict.error, exit } as const;
}

function reportFailure(
  run: RunKeys,
  data: { error: string; exit: number | null },
  task: EndedTask | null,
  now: number,
): Statement[] {
  const keys = { ...pickRunKeys(run), execution_id: "" };
  const name = task === null || task.type === "immediate" ? run.task_id : formatTitle(task);
  const notice = {
    kind: "schedule.failed" as const,
    session_key: task?.deliver_to || run.session_key,
    message_id: run.message_id,
    about: run.task_id,
    content: formatGateFailure(name, data.error),
  };
  return [record(now, { kind: "task.gate_failed", ...keys, data }), ...insertNotice(notice, now)];
}

/**
 * Stores the end of a gate. When its task was cancelled or got another worker meanwhile, only the gate ends. Returns whether
 * `statements` were stored.
 */
export async function storeGateEnd(
  db: Database,
  run: RunKeys,
  statements: Statement[],
  now: number,
): Promise<boolean> {
  const { won } = await db.write(statements);
  if (!won) {
    await db.write([dropGate(run.task_id, run.execution_id, now), deleteReservation(run.execution_id)]);
  }
  return won;
}
