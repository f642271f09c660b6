// Words that the API, the rows and the clients share, each list once: schemas, command line and SQL CHECKs import them.
// Without zod, so that the command line starts fast (contract 6.9).

/** Rules of a task type: when it starts, its fields and its defaults. */
interface TaskTypeRules {
  /** Waits for a time, so the task can be changed, paused and run by hand. */
  isTimed: boolean;
  /** Waits for its next time after each run. */
  isRecurring: boolean;
  /** Fields that tasks of this type have in addition to the common fields. */
  fields: readonly string[];
  /** Default number of consecutive failures that pause the task. 0 means never. */
  pauseAfterFailures: number;
  /** Fields that a plan of the bee must give, as text for its prompt. */
  needs: string;
}

const RULES = {
  immediate: {
    isTimed: false,
    isRecurring: false,
    fields: ["verify", "after", "after_when"],
    pauseAfterFailures: 0,
    needs: "",
  },
  countdown: {
    isTimed: true,
    isRecurring: false,
    fields: ["scheduled_at", "name", "paused", "gate", "verify", "deliver_to"],
    pauseAfterFailures: 0,
    needs: ' with "scheduled_at" in Unix ms, at least 5 seconds ahead',
  },
  scheduled: {
    isTimed: true,
    isRecurring: true,
    fields: [
      ...["cron", "time_zone", "name", "paused", "gate", "verify", "deliver_to"],
      ...["overlap", "pause_after_failures", "until", "max_runs"],
    ],
    pauseAfterFailures: 5,
    needs: ' with "cron" (five fields) and, for another time zone, "time_zone"',
  },
} satisfies Record<string, TaskTypeRules>;

/** Task types by their start: now, at a time, by cron. planTask() plans the first run of each. */
export type TaskType = keyof typeof RULES;
export const TASK_TYPE_RULES: Readonly<Record<TaskType, TaskTypeRules>> = RULES;
export const TASK_TYPES = Object.keys(RULES) as [TaskType, ...TaskType[]];

export const TASK_STATUSES = ["scheduled", "pending", "running", "completed", "failed", "cancelled"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

export const ACTIVE_TASK_STATUSES = ["pending", "running", "scheduled"] as const satisfies TaskStatus[];
export const ENDED_TASK_STATUSES = ["completed", "failed", "cancelled"] as const satisfies TaskStatus[];

/** When a task starts that waits for others: after their success, or however they end (contract 25). */
export const AFTER_CONDITIONS = ["success", "end"] as const;

/** Actions of a schedule that falls due while it still runs (contract 15). */
export const OVERLAPS = ["skip", "queue", "replace"] as const;

/** Statuses of one firing of a schedule. `gating`: its gate runs; `gated`: its gate skipped it (contract 15). */
export const OCCURRENCE_STATUSES = [
  ...["pending", "gating", "running", "completed", "failed", "cancelled", "gated"] as const,
] as const;
export type OccurrenceStatus = (typeof OCCURRENCE_STATUSES)[number];

/** Outcome of the latest run of a schedule, or '' before the first run (contract 8.9). */
export const LAST_STATUSES = ["", ...ENDED_TASK_STATUSES] as const;

export function isEndedTask(status: TaskStatus): boolean {
  return ENDED_TASK_STATUSES.some((one) => one === status);
}

export const EXECUTION_STATUSES = ["pending", "running", "completed", "failed"] as const;
type ExecutionStatus = (typeof EXECUTION_STATUSES)[number];

export const OPEN_EXECUTION_STATUSES = ["pending", "running"] as const satisfies ExecutionStatus[];
export const ENDED_EXECUTION_STATUSES = ["completed", "failed"] as const satisfies ExecutionStatus[];

/** Returns whether an execution or a run of the bee has ended. */
export function isEndedExecution(status: ExecutionStatus): boolean {
  return ENDED_EXECUTION_STATUSES.some((one) => one === status);
}

/** Statuses of words for a run in progress (contract 23). */
export const STEER_STATUSES = ["queued", "sent", "delivered"] as const;

/** Notes of ended runs: the agent said or did something, or its engine could not be used. */
export const ENGINE_USES = ["acted", "unusable"] as const;
export type EngineUse = (typeof ENGINE_USES)[number];

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
  "setup",
  "isolation",
] as const;
export type Failure = (typeof FAILURES)[number];

export const BEE_RUN_STATUSES = ["running", "completed", "failed"] as const;

/** Computed from runs: `working` during a run, `waiting` while the run waits for a person, otherwise `paused` or `idle`. */
export const WORKER_STATUSES = ["idle", "working", "waiting", "paused"] as const;

/** Statuses of a worker in responses: `unavailable` replaces `idle` while its engine cannot be used. */
export const SHOWN_WORKER_STATUSES = [...WORKER_STATUSES, "unavailable"] as const;

/** Statuses of a question. All but `open` are final. */
export const QUESTION_STATUSES = ["open", "answered", "expired", "cancelled"] as const;

/** The `answered_by` of an expired question with a default. */
export const BY_DEFAULT = "default";

/** The answers to a tool call that needs approval (contract 23). */
export const ALLOW = "Allow";
export const ALLOW_HERE = "Allow in this conversation";
export const DENY = "Deny";

/** Whether a tool call runs. `wait` while a person has yet to answer. */
export const APPROVAL_DECISIONS = ["allow", "deny", "wait"] as const;

export const INBOUND_STATUSES = ["received", "feeding", "bee_processed", "merged", "failed"] as const;
type InboundStatus = (typeof INBOUND_STATUSES)[number];

/** Statuses of messages that still have to be routed, and of all others. */
export const UNROUTED_STATUSES = ["received", "feeding"] as const satisfies InboundStatus[];
export const ROUTED_STATUSES = ["bee_processed", "merged", "failed"] as const satisfies InboundStatus[];

/** The recipient of a message: a worker, the coordinator with a reply, or none. '' until the message is routed. */
export const ROUTED_TO = ["", "task", "reply", "nobody"] as const;
export type RoutedTo = (typeof ROUTED_TO)[number];

/** Rules that decide where a message goes (contract 4.3, contract 16). */
export const ROUTING_RULES = ["mention", "session", "match", "only", "nobody", "coordinator"] as const;
export type RoutingRule = (typeof ROUTING_RULES)[number];

export const OUTBOUND_STATUSES = ["sent", "failed"] as const;

export const SOURCE_TYPES = ["bee", "worker", "system"] as const;
export type SourceType = (typeof SOURCE_TYPES)[number];

/** Senders in a chat history. */
export const CHAT_ROLES = ["user", "bee"] as const;

/** States in a `status` event of a chat stream (contract 4, Stream). */
export const CHAT_STATES = ["received", "routing", "queued", "working", "idle"] as const;
export type ChatState = (typeof CHAT_STATES)[number];

/** Reasons in a stream's last event (contract 4, Stream). */
export const STREAM_ENDS = ["deleted", "shutdown", "token_expired", "revoked"] as const;
export type StreamEnd = (typeof STREAM_ENDS)[number];

/** Sources of the operator's password. The API can change the password only if its source is `generated` or `operator` (contract 5.1). */
export const PASSWORD_SOURCES = ["generated", "config", "environment", "operator"] as const;
export type PasswordSource = (typeof PASSWORD_SOURCES)[number];

/**
 * `stopping`: the service drains runs and refuses new work. `failed`: the service can no longer store anything (reliability
 * DBF-9).
 */
export const SERVICE_STATES = ["starting", "ready", "stopping", "failed"] as const;
export type ServiceState = (typeof SERVICE_STATES)[number];

export const CHECK_STATUSES = ["ok", "warn", "fail"] as const;

/** Kinds of events. The batch that makes an event true writes its journal row (contract 4, Journal). */
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
  "task.retried",
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
  "execution.steered",
  "execution.steer_delivered",
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
  "gateway.used",
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
  "device.created",
  "device.updated",
  "device.deleted",
  "secret.created",
  "secret.updated",
  "secret.deleted",
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
  "inbox.dismissed",
  "tree.created",
  "tree.push_requested",
  "tree.pushed",
  "tree.push_failed",
  "tree.rounds_over",
  "tree.discarded",
  "tree.removed",
  "runner.created",
  "runner.updated",
  "runner.deleted",
  "launch.created",
  "launch.started",
  "launch.ended",
  "launch.problem",
  "launcher.paused",
  "launcher.resumed",
  "system.started",
  "system.stopped",
  "system.backup",
  "system.key_rotated",
  "system.backup_failed",
  "system.disk_low",
  "system.isolation_changed",
  "system.restored",
  "system.resumed",
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

/** Kinds of objects in a fleet, in the order of its file (contract 16). */
export const FLEET_KINDS = ["department", "worker", "schedule", "budget", "webhook", "memory"] as const;
export type FleetKind = (typeof FLEET_KINDS)[number];

export const FLEET_ACTIONS = ["create", "update", "adopt", "delete"] as const;

export const ROLES = ["viewer", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** Source of a user: the configuration, a local name and password, or an OpenID provider. */
export const USER_ORIGINS = ["operator", "local", "oidc"] as const;

/** Statuses of a message to a device. `skipped`: it was outdated, not permitted or too much. */
export const DEVICE_PUSH_STATUSES = ["waiting", "sent", "failed", "skipped"] as const;
export type DevicePushStatus = (typeof DEVICE_PUSH_STATUSES)[number];

/** Kinds of logins. A program holds the whole secret of its login, a browser two halves (contract 9). */
export const LOGIN_KINDS = ["login", "browser"] as const;
export type LoginKind = (typeof LOGIN_KINDS)[number];

export const BUDGET_UNITS = ["runs", "tokens", "minutes", "usd"] as const;
export type BudgetUnit = (typeof BUDGET_UNITS)[number];
export const BUDGET_PERIODS = ["5h", "24h", "7d", "month", "total"] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

/** Actions at the limit: start nothing new, or also end open runs. */
export const BUDGET_ACTIONS = ["hold", "stop"] as const;
export const BUDGET_STATES = ["ok", "soft", "hard", "unmeasured"] as const;
export type BudgetState = (typeof BUDGET_STATES)[number];

/** Causes that block a pending task (contract 14). */
export const HOLD_KINDS = ["budget", "engine", "launch", "run_limit", "runner", "task"] as const;

/** Forges whose events a webhook platform reads itself. */
export const FORGES = ["github", "gitlab", "gitea"] as const;
export type Forge = (typeof FORGES)[number];

/** Kinds of gateways: a provider's model API, or any HTTP API. */
export const GATEWAY_KINDS = ["anthropic", "openai", "http"] as const;
export type GatewayKind = (typeof GATEWAY_KINDS)[number];

export const RUNNER_STATES = ["online", "silent", "draining"] as const;

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
  "secrets",
] as const;
export type Resource = (typeof RESOURCES)[number];
export type Scope = `${(typeof VERBS)[number]}:${Resource}`;

/** States of a push: before and after its question, requested, or why it did not happen. */
export const TREE_PUSH_STATES = ["", "ask", "asked", "wanted", "failed", "blocked"] as const;

export const WEBHOOK_ORIGINS = ["config", "api"] as const;

export const USAGE_GROUPS = ["worker", "department", "engine", "day", "conversation"] as const;

/** Kinds of items that need a person (contract 17). */
export const INBOX_KINDS = [
  "question",
  "run_failed",
  "task_stopped",
  "message_failed",
  "undelivered",
  "engine_limited",
  "budget_holds",
  "schedule_paused",
  "worker_paused",
  "launcher_paused",
  "secret_lost",
  "push_failed",
  "rounds_over",
] as const;
export type InboxKind = (typeof INBOX_KINDS)[number];

/** Kinds that can be dismissed for good. The others describe a state: they can only be snoozed. */
export const INBOX_FAILURES = [
  "run_failed",
  "task_stopped",
  "message_failed",
  "undelivered",
  "rounds_over",
] as const satisfies InboxKind[];
