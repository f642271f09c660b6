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

// Each state has a shape of its own: colour alone is not seen by everybody.
const LOOKS: Record<string, [LucideIcon, Tone, string]> = {
  completed: [CircleCheck, "good", "completed"],
  sent: [CircleCheck, "good", "sent"],
  bee_processed: [CircleCheck, "good", "routed"],
  ok: [CircleCheck, "good", "fine"],
  failed: [OctagonX, "bad", "failed"],
  fail: [OctagonX, "bad", "broken"],
  undelivered: [OctagonX, "bad", "not delivered"],
  warn: [TriangleAlert, "warn", "attention"],
  limited: [TriangleAlert, "warn", "limited"],
  running: [LoaderCircle, "busy", "running"],
  working: [LoaderCircle, "busy", "working"],
  feeding: [LoaderCircle, "busy", "routing"],
  received: [CircleDashed, "busy", "received"],
  pending: [CircleDashed, "busy", "waiting"],
  waiting: [CircleQuestionMark, "warn", "waits for an answer"],
  question: [CircleQuestionMark, "warn", "a question"],
  scheduled: [Clock, "quiet", "scheduled"],
  paused: [CirclePause, "warn", "paused"],
  cancelled: [CircleSlash, "quiet", "cancelled"],
  merged: [Circle, "quiet", "merged"],
  idle: [Circle, "quiet", "idle"],
  unavailable: [TriangleAlert, "bad", "not available"],
  soft: [TriangleAlert, "warn", "nearly used up"],
  hard: [OctagonX, "bad", "used up"],
  unmeasured: [CircleDashed, "warn", "not measured"],
  lifted: [CirclePause, "quiet", "lifted"],
  missing: [CircleSlash, "quiet", "not usable"],
  off: [CircleSlash, "quiet", "off"],
  connecting: [CircleDashed, "busy", "connecting"],
  connected: [CircleCheck, "good", "connected"],
  down: [OctagonX, "bad", "does not answer"],
  refused: [OctagonX, "bad", "its key is refused"],
  sending: [CircleCheck, "good", "sends"],
  retrying: [TriangleAlert, "warn", "tries again"],
  passed: [CircleCheck, "good", "passed"],
  rejected: [OctagonX, "bad", "not passed"],
  online: [CircleCheck, "good", "online"],
  silent: [TriangleAlert, "warn", "not heard of"],
  awaited: [CircleDashed, "quiet", "not here yet"],
  draining: [CirclePause, "quiet", "draining"],
  active: [CircleCheck, "good", "may sign in"],
  disabled: [CircleSlash, "quiet", "may not sign in"],
};

/** A state: shape, colour and word. */
export function Status({ of, bare = false }: { of: string; bare?: boolean }) {
  const [Icon, tone, word] = LOOKS[of] ?? [Circle, "quiet", of];
  const spins = Icon === LoaderCircle ? " spins" : "";
  return (
    <span class={`status ${tone}`} title={bare ? word : undefined}>
      <Icon size={16} class={`shape${spins}`} aria-hidden="true" />
      <span class={bare ? "unseen" : ""}>{word}</span>
    </span>
  );
}

/** The word for a state, as lists of choices show it. */
export function statusWord(status: string): string {
  return LOOKS[status]?.[2] ?? status;
}
