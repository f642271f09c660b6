import {
  Circle,
  CircleCheck,
  CircleDashed,
  CirclePause,
  CircleQuestionMark,
  CircleSlash,
  Clock,
  LoaderCircle,
  type LucideIcon,
  OctagonX,
  TriangleAlert,
} from "lucide-preact";

type Tone = "good" | "bad" | "warn" | "busy" | "quiet";

// Each state has its own shape, because some users cannot tell the colors apart.
const STATES: Record<string, [LucideIcon, Tone, string]> = {
  completed: [CircleCheck, "good", "completed"],
  sent: [CircleCheck, "good", "sent"],
  bee_processed: [CircleCheck, "good", "routed"],
  ok: [CircleCheck, "good", "OK"],
  failed: [OctagonX, "bad", "failed"],
  fail: [OctagonX, "bad", "failed"],
  undelivered: [OctagonX, "bad", "not delivered"],
  warn: [TriangleAlert, "warn", "warning"],
  limited: [TriangleAlert, "warn", "rate-limited"],
  running: [LoaderCircle, "busy", "running"],
  working: [LoaderCircle, "busy", "working"],
  feeding: [LoaderCircle, "busy", "routing"],
  received: [CircleDashed, "busy", "received"],
  pending: [CircleDashed, "busy", "waiting"],
  waiting: [CircleQuestionMark, "warn", "waiting for an answer"],
  question: [CircleQuestionMark, "warn", "question"],
  scheduled: [Clock, "quiet", "scheduled"],
  paused: [CirclePause, "warn", "paused"],
  cancelled: [CircleSlash, "quiet", "cancelled"],
  merged: [Circle, "quiet", "merged"],
  idle: [Circle, "quiet", "idle"],
  unavailable: [TriangleAlert, "bad", "unavailable"],
  soft: [TriangleAlert, "warn", "nearly used up"],
  hard: [OctagonX, "bad", "used up"],
  unmeasured: [CircleDashed, "warn", "not measured"],
  lifted: [CirclePause, "quiet", "lifted"],
  missing: [CircleSlash, "quiet", "not installed"],
  off: [CircleSlash, "quiet", "off"],
  connecting: [CircleDashed, "busy", "connecting"],
  connected: [CircleCheck, "good", "connected"],
  down: [OctagonX, "bad", "not responding"],
  refused: [OctagonX, "bad", "credentials rejected"],
  sending: [CircleCheck, "good", "active"],
  retrying: [TriangleAlert, "warn", "retrying"],
  passed: [CircleCheck, "good", "passed"],
  rejected: [OctagonX, "bad", "rejected"],
  online: [CircleCheck, "good", "online"],
  silent: [TriangleAlert, "warn", "not responding"],
  awaited: [CircleDashed, "quiet", "not connected yet"],
  draining: [CirclePause, "quiet", "draining"],
  active: [CircleCheck, "good", "active"],
  lost: [OctagonX, "bad", "lost"],
  disabled: [CircleSlash, "quiet", "disabled"],
};

export function Status({ value, bare = false }: { value: string; bare?: boolean }) {
  const [Icon, tone, word] = STATES[value] ?? [Circle, "quiet", value];
  const spins = Icon === LoaderCircle ? " spins" : "";
  return (
    <span class={`status ${tone}`} title={bare ? word : undefined}>
      <Icon size={16} class={`shape${spins}`} aria-hidden="true" />
      <span class={bare ? "unseen" : ""}>{word}</span>
    </span>
  );
}

export function formatStatus(status: string): string {
  return STATES[status]?.[2] ?? status;
}

/** Lists states as options of a filter. The first option selects all states. */
export function listStatusOptions(all: string, states: readonly string[]): [string, string][] {
  return [["", all], ...states.map((state): [string, string] => [state, formatStatus(state)])];
}
