import type { EventKind } from "../call/vocabulary.ts";

/** Kinds of notices that the configuration can send elsewhere (contract 11). */
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
  "launcher.paused",
  "launch.problem",
  "disk.low",
  "backup.failed",
] as const;

/** `run_limit.met` always goes to its conversation, so no rule names it. */
type NoticeKind = (typeof NOTICE_KINDS)[number] | "run_limit.met";

/** A notice of the service to people (contract 11). */
export interface Notice {
  kind: NoticeKind;
  /** The conversation of the subject. */
  session_key: string;
  /** The message in that conversation that led to the notice, or "". */
  message_id: string;
  /** Id of the subject: a task, a run, a budget, a question. */
  about: string;
  /** The run of the subject, or "". */
  execution_id?: string;
  /** The event and the way out, in plain words. */
  content: string;
}

/** Events that can cause a notice. */
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
  "launcher.paused",
  "launch.problem",
  "system.disk_low",
  "system.backup_failed",
];

// Notices of these kinds always go to the conversation of their subject, whatever the configuration says.
const SENT_TO_SUBJECT: readonly NoticeKind[] = [
  "schedule.failed",
  "schedule.paused",
  "question.opened",
  "budget.soft",
  "budget.hard",
];

/** Prefix of a webhook as target of notices. */
export const TO_WEBHOOK = "webhook:";

/** A configured target of notices. */
export interface NoticeRule {
  on: readonly string[];
  /** A session key, or `webhook:<name>`. */
  to?: string | undefined;
  /** The program and its arguments. */
  program?: readonly string[] | undefined;
  /** Equal notices are sent once in this many ms. */
  every: number;
}

/** Returns the kinds that match a pattern such as `budget.*`. */
export function matchNoticeKinds(pattern: string): NoticeKind[] {
  return NOTICE_KINDS.filter((kind) =>
    pattern === "*" || pattern === kind || pattern.endsWith(".*") && kind.startsWith(pattern.slice(0, -1))
  );
}

/** Returns a key for the target of a rule. */
export function getRuleKey({ to, program }: NoticeRule): string {
  return to ?? JSON.stringify(program);
}

/**
 * Returns whether a rule sends the notice. A notice about a platform or a webhook never goes there, and no conversation gets
 * a notice twice (contract 11).
 */
export function isWanted({ on, to = "" }: NoticeRule, notice: Notice): boolean {
  if (!on.some((pattern) => matchNoticeKinds(pattern).includes(notice.kind))) return false;
  if (to === notice.about || notice.about === `platform:${to.split(":")[0]}`) return false;
  return to !== notice.session_key || !SENT_TO_SUBJECT.includes(notice.kind);
}
