import type { EventKind } from "../call/vocabulary.ts";

/** What the configuration can have told elsewhere (contract 11). */
const NOTICE_KINDS = [
  "run.failed",
  "schedule.failed",
  "schedule.paused",
  "question.opened",
  "budget.soft",
  "budget.hard",
  "engine.limited",
  "engine.back",
  "platform.down",
  "delivery.failed",
  "disk.low",
  "backup.failed",
] as const;

/** What the service tells people by itself (contract 11). */
type NoticeKind = (typeof NOTICE_KINDS)[number] | "run_limit.met";

/** What the service itself tells people about a thing (contract 11). */
export interface Notice {
  kind: NoticeKind;
  /** The conversation that the thing belongs to. */
  session_key: string;
  /** The message of that conversation that led to the thing, or "". */
  message_id: string;
  /** The id of the thing: a task, a run, a budget, a question. */
  about: string;
  /** The run that it is about, or "". */
  execution_id?: string;
  /** What happened and the way out, in plain words. */
  content: string;
}

/** Which events may be worth a notice. */
export const NOTICE_EVENTS: readonly EventKind[] = [
  "execution.failed",
  "task.gate_failed",
  "schedule.paused",
  "question.opened",
  "budget.soft",
  "budget.hard",
  "engine.limited",
  "engine.lifted",
  "engine.back",
  "platform.down",
  "message.undelivered",
  "webhook.disabled",
  "system.disk_low",
  "system.backup_failed",
];

// These are told to the conversation that they belong to, whatever the configuration says.
const TOLD_AT_HOME: readonly NoticeKind[] = [
  "schedule.failed",
  "schedule.paused",
  "question.opened",
  "budget.soft",
  "budget.hard",
];

/** `webhook:<name>` in the configuration means one that events are sent to. */
export const TO_WEBHOOK = "webhook:";

/** Where notices go, besides the conversation that the thing belongs to. */
export interface NoticeRule {
  on: readonly string[];
  /** A session key, or `webhook:<name>`. */
  to?: string | undefined;
  /** The program and its arguments. */
  program?: readonly string[] | undefined;
  /** Of notices that are equal only one is told in so many ms. */
  every: number;
}

/** The kinds that a pattern such as `budget.*` means. */
export function noticeKindsOf(pattern: string): NoticeKind[] {
  return NOTICE_KINDS.filter((kind) =>
    pattern === "*" || pattern === kind || pattern.endsWith(".*") && kind.startsWith(pattern.slice(0, -1))
  );
}

/** What names the place of a rule. */
export function placeOfRule({ to, program }: NoticeRule): string {
  return to ?? JSON.stringify(program);
}

/**
 * Whether a rule wants the notice: never at the platform or the webhook that it is about, and not twice in the conversation that it
 * belongs to (contract 11).
 */
export function isWanted({ on, to = "" }: NoticeRule, notice: Notice): boolean {
  if (!on.some((pattern) => noticeKindsOf(pattern).includes(notice.kind))) return false;
  if (to === notice.about || notice.about === `platform:${to.split(":")[0]}`) return false;
  return to !== notice.session_key || !TOLD_AT_HOME.includes(notice.kind);
}
