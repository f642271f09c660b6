import type { Schemas } from "../../live/api.ts";
import { stripCodes } from "../../parts/plain_text.ts";

type Execution = Schemas["Execution"];

/** A part of a run's time. `to` is null while it lasts. */
export interface Span {
  kind: "wait" | "attempt" | "tool" | "question" | "check";
  title: string;
  note: string;
  from: number;
  to: number | null;
  status: string;
  /** The index of its line in the log. */
  line?: number;
  href?: string;
}

interface TimelineParts {
  execution: Execution;
  /** Every execution of the same run, the oldest first. */
  attempts: readonly Execution[];
  questions: readonly Schemas["Question"][];
  events: readonly Schemas["Event"][];
  lines: readonly string[];
}

const TOOLS_SHOWN_MAX = 200;

/** Builds the waits, attempts, questions, tool calls and checks of a run, in the order of their starts. */
export function buildTimeline({ execution, attempts, questions, events, lines }: TimelineParts): Span[] {
  return [
    ...buildAttempts(attempts.length === 0 ? [execution] : attempts, execution, events),
    ...questions.map(({ text, status, answer, created_at, answered_at, expires_at }): Span => ({
      ...{ kind: "question", title: "Question", note: answer === "" ? text : `${text} → ${answer}` },
      from: created_at,
      to: answered_at ??
        (status === "open" ? null : Math.min(expires_at, execution.completed_at ?? expires_at)),
      status: status === "open" ? "waiting" : status === "answered" ? "completed" : "cancelled",
    })),
    ...buildToolCalls(lines, execution.completed_at),
  ].sort((one, other) => one.from - other.from);
}

function buildAttempts(
  attempts: readonly Execution[],
  current: Execution,
  events: readonly Schemas["Event"][],
): Span[] {
  const spans: Span[] = [];
  const first = attempts[0];
  const due = events.filter(({ kind, at }) =>
    /^task\.(created|due|queued)$/.test(kind) && at <= (first?.created_at ?? 0)
  );
  let waitsFrom = due.at(-1)?.at ?? first?.created_at ?? current.created_at;
  attempts.forEach((one, index) => {
    const start = one.started_at ?? one.completed_at;
    const limit = events.find(({ kind, at }) =>
      kind === "task.requeued" && at >= waitsFrom && at <= (start ?? Infinity)
    );
    const note = typeof limit?.data["reason"] === "string" ? limit.data["reason"] : "";
    spans.push({
      ...{ kind: "wait", title: "Waiting", note, from: waitsFrom, to: start },
      status: start === null ? "pending" : "idle",
    });
    if (start === null) return;
    spans.push({
      ...{ kind: "attempt", title: attempts.length > 1 ? `Attempt ${index + 1}` : "Run", note: one.engine },
      ...{ from: start, to: one.completed_at },
      status: one.failure === "cancelled" ? "cancelled" : one.status,
      ...(one.id === current.id ? {} : { href: `/console/executions/${one.id}` }),
    });
    waitsFrom = one.completed_at ?? start;
  });
  return spans;
}

const LINE = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z) (?:([<>]) (.*)|\[check (\d+): (.*)\])$/;

/** Finds the tool calls and checks in a log. A result belongs to the oldest call without one. */
function buildToolCalls(lines: readonly string[], completedAt: number | null): Span[] {
  const found: Span[] = [];
  const open: Span[] = [];
  for (const [line, text] of lines.entries()) {
    if (found.length >= TOOLS_SHOWN_MAX && open.length === 0) break;
    const [, stamp = "", mark, rest = "", round, result = ""] = LINE.exec(stripCodes(text)) ?? [];
    const at = Date.parse(stamp);
    if (round !== undefined) {
      const status = result === "exit code 0" ? "passed" : "rejected";
      found.push({ kind: "check", title: `Check ${round}`, note: result, from: at, to: at, status, line });
    } else if (mark === ">" && found.length < TOOLS_SHOWN_MAX) {
      const [, title = "", note = ""] = /^([^:]{1,60})(?:: (.*))?$/.exec(rest) ?? [null, "Tool", rest];
      const call: Span = { kind: "tool", title, note, from: at, to: completedAt, status: "running", line };
      if (completedAt !== null) call.status = "cancelled";
      found.push(call);
      open.push(call);
    } else if (mark === "<") {
      const call = open.shift();
      if (call !== undefined) {
        [call.to, call.status] = [at, rest.startsWith("failed:") ? "failed" : "completed"];
      }
    }
  }
  return found;
}
