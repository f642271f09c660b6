/** What can happen. A journal row names one of these and is written in the batch that makes it true (contract 4). */
export const EVENT_KINDS = [
  "message.received",
  "message.merged",
  "message.feeding",
  "message.routed",
  "message.failed",
  "message.sent",
  "message.undelivered",
  "session.idle",
  "session.cleared",
  "context.cleared",
  "task.created",
  "task.due",
  "task.completed",
  "task.failed",
  "task.cancelled",
  "task.rescheduled",
  "task.requeued",
  "task.skipped",
  "task.missed",
  "execution.started",
  "execution.cancelling",
  "execution.completed",
  "execution.failed",
  "worker.created",
  "worker.updated",
  "worker.deleted",
  "department.created",
  "department.updated",
  "department.deleted",
  "memory.saved",
  "memory.deleted",
  "chat.created",
  "chat.updated",
  "chat.deleted",
  "upload.stored",
  "auth.login",
  "auth.refused",
  "auth.logout",
  "auth.password_changed",
  "system.started",
  "system.stopped",
  "system.backup",
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

/** A journal entry before it has its number. Absent references are "". */
export interface JournalEntry {
  kind: EventKind;
  session_key?: string;
  worker_id?: string;
  task_id?: string;
  execution_id?: string;
  message_id?: string;
  /** Who did it: `operator:<name>`, `worker:<id>`, `bee` or `system`. */
  actor?: string;
  data?: Record<string, unknown>;
}
