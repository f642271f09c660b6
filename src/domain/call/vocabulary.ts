// The words that the API, its rows and its clients share, each list once: the schemas of domain, the command line, and
// the CHECKs of the database have them from here. Without zod, so that the command line starts fast (contract 6.9).

/** When a task is to run (interface 2, Task). */
export const TASK_TYPES = ["immediate", "countdown", "scheduled"] as const;
export type TaskType = (typeof TASK_TYPES)[number];

export const TASK_STATUSES = ["scheduled", "pending", "running", "completed", "failed", "cancelled"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** Statuses in which work is still to come or in progress; a task in any other has ended (contract 3, Task). */
export const ACTIVE_TASK_STATUSES = ["pending", "running", "scheduled"] as const satisfies TaskStatus[];
export const ENDED_TASK_STATUSES = ["completed", "failed", "cancelled"] as const satisfies TaskStatus[];

/** What a schedule does when it falls due while it still runs (contract 15). */
export const OVERLAPS = ["skip", "queue", "replace"] as const;

/** Statuses of one firing of a schedule. `gating`: its gate runs; `gated`: its gate skipped it (contract 15). */
export const OCCURRENCE_STATUSES = [
  ...["pending", "gating", "running", "completed", "failed", "cancelled", "gated"] as const,
] as const;
export type OccurrenceStatus = (typeof OCCURRENCE_STATUSES)[number];

/** How the latest run of a schedule ended; '' before the first (contract 8.9). */
export const LAST_STATUSES = ["", ...ENDED_TASK_STATUSES] as const;

/** Whether a task has ended. */
export function isEndedTask(status: TaskStatus): boolean {
  return ENDED_TASK_STATUSES.some((one) => one === status);
}

export const EXECUTION_STATUSES = ["pending", "running", "completed", "failed"] as const;
type ExecutionStatus = (typeof EXECUTION_STATUSES)[number];

/** Statuses in which a run is still to come or in progress; an execution in any other has ended. */
export const OPEN_EXECUTION_STATUSES = ["pending", "running"] as const satisfies ExecutionStatus[];
export const ENDED_EXECUTION_STATUSES = ["completed", "failed"] as const satisfies ExecutionStatus[];

/** Whether an execution, or a run of the bee, has ended. */
export function isEndedExecution(status: ExecutionStatus): boolean {
  return ENDED_EXECUTION_STATUSES.some((one) => one === status);
}

/** Why a run failed (contract 3, Execution). */
export const FAILURES = [
  "exit_code",
  "engine_error",
  "timeout",
  "idle_timeout",
  "cancelled",
  "spawn_failed",
  "server_lost",
  "rate_limited",
  "budget",
  "verify_failed",
] as const;
export type Failure = (typeof FAILURES)[number];

/** Statuses of one run of the bee. */
export const BEE_RUN_STATUSES = ["running", "completed", "failed"] as const;

/** Derived, never stored: `working` while a run is in progress, `waiting` while that waits for a person, else `paused` or `idle` (contract 3, Worker). */
export const WORKER_STATUSES = ["idle", "working", "waiting", "paused"] as const;

/** What is shown of one worker: in the place of `idle`, `unavailable` while its engine cannot be used (contract 3, Worker). */
export const SHOWN_WORKER_STATUSES = [...WORKER_STATUSES, "unavailable"] as const;

/** Statuses of a question; all but the first are its end (contract 12). */
export const QUESTION_STATUSES = ["open", "answered", "expired", "cancelled"] as const;

/** Who answered when nobody did in time. */
export const BY_DEFAULT = "default";

export const INBOUND_STATUSES = ["received", "feeding", "bee_processed", "merged", "failed"] as const;
type InboundStatus = (typeof INBOUND_STATUSES)[number];

/** Statuses in which a message still has to be routed; in any other it is routed, merged or given up. */
export const UNROUTED_STATUSES = ["received", "feeding"] as const satisfies InboundStatus[];
export const ROUTED_STATUSES = ["bee_processed", "merged", "failed"] as const satisfies InboundStatus[];

/** Who took a message: a worker, the coordinator with a reply, or nobody; '' while it is not routed (contract 3, Worker). */
export const ROUTED_TO = ["", "task", "reply", "nobody"] as const;
export type RoutedTo = (typeof ROUTED_TO)[number];

/** Which rule decides where a message goes (contract 4.3, contract 16). */
export const ROUTING_RULES = ["mention", "session", "match", "only", "nobody", "coordinator"] as const;
export type RoutingRule = (typeof ROUTING_RULES)[number];

export const OUTBOUND_STATUSES = ["sent", "failed"] as const;

/** Who says an outbound message. */
export const SOURCE_TYPES = ["bee", "worker", "system"] as const;
export type SourceType = (typeof SOURCE_TYPES)[number];

/** Who says a message of a chat history (interface 2, Local chat message). */
export const CHAT_ROLES = ["user", "bee"] as const;
export type ChatRole = (typeof CHAT_ROLES)[number];

/** What a `status` event of a chat stream says (contract 4, Stream). */
export const CHAT_STATES = ["received", "routing", "queued", "working", "idle"] as const;
export type ChatState = (typeof CHAT_STATES)[number];

/** Why a stream ended; the data of its last event (contract 4, Stream). */
export const STREAM_ENDS = ["deleted", "shutdown", "token_expired", "revoked"] as const;
export type StreamEnd = (typeof STREAM_ENDS)[number];

/** Where the operator's password came from. Only a generated one or the operator's own can be changed over the API (contract 5.1). */
export const PASSWORD_SOURCES = ["generated", "config", "environment", "operator"] as const;
export type PasswordSource = (typeof PASSWORD_SOURCES)[number];

/** `stopping`: runs are drained and new work is refused. `failed`: nothing can be stored any more (reliability DBF-9). */
export const SERVICE_STATES = ["starting", "ready", "stopping", "failed"] as const;
export type ServiceState = (typeof SERVICE_STATES)[number];

/** What a check of the doctor found. */
export const CHECK_STATUSES = ["ok", "warn", "fail"] as const;

/** What can happen. A journal row names one of these and is written in the batch that makes it true (contract 4, Journal). */
export const EVENT_KINDS = [
  "message.received",
  "message.merged",
  "message.feeding",
  "message.routed",
  "message.failed",
  "message.sent",
  "message.undelivered",
  "message.resent",
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
  "task.updated",
  "task.skipped",
  "task.queued",
  "task.gated",
  "task.gate_failed",
  "task.missed",
  "schedule.paused",
  "execution.started",
  "execution.cancelling",
  "execution.limited",
  "execution.completed",
  "execution.failed",
  "engine.limited",
  "engine.back",
  "question.opened",
  "question.answered",
  "question.expired",
  "question.cancelled",
  "engine.lifted",
  "budget.created",
  "budget.updated",
  "budget.deleted",
  "budget.lifted",
  "budget.soft",
  "budget.hard",
  "run_limit.met",
  "worker.created",
  "worker.updated",
  "worker.deleted",
  "department.created",
  "department.updated",
  "department.deleted",
  "memory.saved",
  "memory.deleted",
  "fleet.applied",
  "chat.created",
  "chat.updated",
  "chat.deleted",
  "upload.stored",
  "auth.login",
  "auth.refused",
  "auth.logout",
  "auth.password_changed",
  "user.created",
  "user.updated",
  "user.deleted",
  "user.password_changed",
  "token.created",
  "token.deleted",
  "platform.paired",
  "platform.revoked",
  "platform.tested",
  "platform.down",
  "platform.up",
  "webhook.created",
  "webhook.updated",
  "webhook.deleted",
  "webhook.tested",
  "webhook.replayed",
  "webhook.disabled",
  "notice.raised",
  "runner.created",
  "runner.updated",
  "runner.deleted",
  "system.started",
  "system.stopped",
  "system.backup",
  "system.key_rotated",
  "system.backup_failed",
  "system.disk_low",
  "system.restored",
  "system.resumed",
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

/** What a fleet holds, in the order in which its file has them (contract 16). */
export const FLEET_KINDS = ["department", "worker", "schedule", "budget", "webhook", "memory"] as const;
export type FleetKind = (typeof FLEET_KINDS)[number];

/** What an apply of a fleet does to one thing. */
export const FLEET_ACTIONS = ["create", "update", "adopt", "delete"] as const;

/** What a user may be (contract 9). */
export const ROLES = ["viewer", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** Where a user comes from: the configuration, a name and a password here, an OpenID provider (contract 9). */
export const USER_ORIGINS = ["operator", "local", "oidc"] as const;
export type UserOrigin = (typeof USER_ORIGINS)[number];

/** Who keeps the secret of a login: a program the whole of it, a browser two halves (contract 9). */
export const LOGIN_KINDS = ["login", "browser"] as const;
export type LoginKind = (typeof LOGIN_KINDS)[number];

/** What a budget counts, and over which time (contract 14). */
export const BUDGET_UNITS = ["runs", "tokens", "minutes", "usd"] as const;
export type BudgetUnit = (typeof BUDGET_UNITS)[number];
export const BUDGET_PERIODS = ["5h", "24h", "7d", "month", "total"] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

/** What happens at the limit: nothing new starts, or what runs is ended, too. */
export const BUDGET_ACTIONS = ["hold", "stop"] as const;
export const BUDGET_STATES = ["ok", "soft", "hard", "unmeasured"] as const;
export type BudgetState = (typeof BUDGET_STATES)[number];

/** What can hold a pending task (contract 14). */
export const HOLD_KINDS = ["budget", "engine", "run_limit", "runner"] as const;

/** What a runner is to the service (contract 18). */
export const RUNNER_STATES = ["online", "silent", "draining"] as const;

/** What a scope may ask to do (contract 2.6). */
export const VERBS = ["read", "write"] as const;
export const RESOURCES = [
  "workers",
  "tasks",
  "memory",
  "sessions",
  "executions",
  "departments",
  "messages",
  "chat",
  "system",
  "users",
  "tokens",
  "platforms",
  "hooks",
  "questions",
  "budgets",
  "engines",
  "webhooks",
  "notices",
  "fleet",
  "runners",
  "runs",
  "commands",
] as const;

export type Resource = (typeof RESOURCES)[number];
export type Scope = `${(typeof VERBS)[number]}:${Resource}`;

/** Who made a webhook (contract 11). */
export const WEBHOOK_ORIGINS = ["config", "api"] as const;

/** By what usage can be summed up (contract 17). */
export const USAGE_GROUPS = ["worker", "department", "engine", "day", "conversation"] as const;

/** What can need a person (contract 17). */
export const INBOX_KINDS = [
  "question",
  "run_failed",
  "message_failed",
  "undelivered",
  "engine_limited",
  "budget_holds",
  "schedule_paused",
  "worker_paused",
  "schedule_paused",
] as const;
