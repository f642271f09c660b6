import type { Scope } from "./vocabulary.ts";

/** Required to call an operation: a scope, any valid token, or nothing. */
export type Access = Scope | "token" | "public";

export interface Rule {
  access: Access;
  /**
   * `people`: no runs, whatever their scopes. `own`: every logged-in user for own objects. `unbound`: only runs with `*:*`,
   * which are not bound to a conversation. `runners`: runner machines, which may call nothing else (contract 18). `runs`: the engines of runs.
   */
  only?: "people" | "own" | "unbound" | "runners" | "runs";
}

/**
 * Access rules of every operation. A route without a matching rule stops the start, so that no operation is added without a
 * decision (reliability AUT-10, USR-1).
 */
const TABLE: readonly [operation: string, access: Access, only?: NonNullable<Rule["only"]>][] = [
  ["POST /api/auth/login", "public"],
  ["POST /api/auth/refresh", "public"],
  ["POST /api/auth/logout", "public"],
  ["GET /api/auth/oidc/start", "public"],
  ["GET /api/auth/oidc/callback", "public"],
  ["GET /api/auth/whoami", "token"],
  ["POST /api/auth/console", "token", "people"],

  ["GET /api/users", "read:users"],
  ["POST /api/users", "write:users"],
  ["GET /api/users/:id_or_name", "read:users"],
  ["PUT /api/users/:id_or_name", "write:users"],
  ["DELETE /api/users/:id_or_name", "write:users"],
  ["PUT /api/users/:id_or_name/password", "write:users", "own"],
  ["GET /api/tokens", "write:tokens", "own"],
  ["POST /api/tokens", "write:tokens", "own"],
  ["DELETE /api/tokens/:id", "write:tokens", "own"],
  ["GET /api/push/key", "token", "people"],
  ["GET /api/push/devices", "write:users", "own"],
  ["POST /api/push/devices", "write:users", "own"],
  ["DELETE /api/push/devices/:id", "write:users", "own"],
  ["GET /api/audit", "read:users"],
  ["GET /api/secrets", "write:secrets"],
  ["GET /api/secrets/:name", "write:secrets"],
  ["PUT /api/secrets/:name", "write:secrets"],
  ["DELETE /api/secrets/:name", "write:secrets"],

  ["GET /api/workers", "read:workers"],
  ["POST /api/workers", "write:workers"],
  ["GET /api/workers/:id", "read:workers"],
  ["PUT /api/workers/:id", "write:workers"],
  ["DELETE /api/workers/:id", "write:workers", "people"],
  ["GET /api/workers/:id/trees", "read:workers", "people"],
  ["POST /api/workers/:id/skills/check", "write:workers", "people"],
  ["GET /api/workers/:id/status", "read:workers"],
  ["GET /api/workers/:id/executions", "read:executions"],
  ["POST /api/workers/:id/rehome", "write:workers", "people"],

  ["GET /api/tasks", "read:tasks"],
  ["POST /api/tasks", "write:tasks"],
  ["POST /api/tasks/batch", "write:tasks"],
  ["GET /api/tasks/:id", "read:tasks"],
  ["PUT /api/tasks/:id", "write:tasks"],
  ["POST /api/tasks/:id/cancel", "write:tasks"],
  ["POST /api/tasks/:id/run", "write:tasks"],
  ["POST /api/tasks/:id/retry", "write:tasks"],
  ["GET /api/tasks/:id/wait", "read:tasks"],
  ["GET /api/schedules", "read:tasks"],
  ["GET /api/schedules/preview", "read:tasks"],
  ["GET /api/queue", "read:tasks"],
  ["POST /api/queue/cancel", "write:tasks", "people"],
  ["GET /api/inbox", "read:tasks", "people"],
  ["POST /api/inbox/:kind/:id/dismiss", "write:tasks", "people"],

  ["GET /api/executions", "read:executions"],
  ["GET /api/executions/:id", "read:executions"],
  ["GET /api/executions/:id/logs", "read:executions"],
  ["POST /api/executions/:id/cancel", "write:executions"],
  ["POST /api/executions/:id/retry", "write:executions"],
  ["POST /api/executions/:id/steer", "write:executions", "people"],
  ["GET /api/executions/:id/diff", "read:executions"],
  ["POST /api/executions/:id/push", "write:executions", "people"],
  ["POST /api/executions/:id/discard", "write:executions", "people"],
  ["GET /api/sessions/:sessionId/executions", "read:executions"],
  ["GET /api/usage", "read:executions"],
  ["GET /api/usage/workers", "read:executions"],

  ["GET /api/memory", "read:memory"],
  ["GET /api/memory/entry", "read:memory"],
  ["PUT /api/memory/entry", "write:memory"],
  ["DELETE /api/memory/entry", "write:memory"],

  ["GET /api/contexts", "read:sessions"],
  ["DELETE /api/contexts", "write:sessions"],
  ["DELETE /api/contexts/:worker_id", "write:sessions"],
  ["GET /api/conversations", "read:sessions"],

  // Each kind of row requires its own scope.
  ["GET /api/search", "token"],
  ["GET /api/recall", "token", "runs"],

  ["GET /api/departments", "read:departments"],
  ["POST /api/departments", "write:departments"],
  ["GET /api/departments/:id_or_name", "read:departments"],
  ["PUT /api/departments/:id_or_name", "write:departments"],
  ["DELETE /api/departments/:id_or_name", "write:departments"],

  ["POST /api/messages", "write:messages"],
  ["GET /api/messages/inbound", "read:messages"],
  ["GET /api/messages/outbound", "read:messages"],
  ["GET /api/messages/:id/trace", "read:messages"],
  ["POST /api/messages/:id/resend", "write:messages", "people"],
  ["POST /api/messages/resend", "write:messages", "people"],
  ["POST /api/messages/explain", "write:messages", "people"],

  ["POST /api/local/sessions", "write:chat", "unbound"],
  ["GET /api/local/sessions", "read:chat"],
  ["GET /api/local/sessions/:id", "read:chat"],
  ["PUT /api/local/sessions/:id", "write:chat", "unbound"],
  ["DELETE /api/local/sessions/:id", "write:chat"],
  ["POST /api/local/sessions/:id/messages", "write:chat"],
  ["GET /api/local/sessions/:id/messages", "read:chat"],
  ["POST /api/local/sessions/:id/media", "write:chat"],
  ["GET /api/local/sessions/:id/media/:name", "read:chat"],
  ["GET /api/local/sessions/:id/stream", "read:chat"],

  // Also requires write:tasks.
  ["GET /v1/models", "write:chat", "people"],
  ["POST /v1/chat/completions", "write:chat", "people"],

  ["GET /api/approvals", "read:sessions"],
  // For runs with any scopes: the engine asks, whatever its agent can do.
  ["POST /api/approvals", "token", "runs"],
  ["GET /api/approvals/:id/wait", "token", "runs"],
  ["POST /api/approvals/:id/withdraw", "token", "runs"],
  ["GET /api/questions", "read:questions"],
  ["POST /api/questions", "write:questions"],
  ["GET /api/questions/:id", "read:questions"],
  ["GET /api/questions/:id/wait", "read:questions"],
  ["POST /api/questions/:id/answer", "write:questions", "people"],
  ["POST /api/questions/:id/cancel", "write:questions", "people"],

  ["GET /api/events", "read:system"],
  ["GET /api/system/overview", "read:system"],
  ["GET /api/system/executions", "read:system"],
  ["GET /api/system/doctor", "read:system"],
  ["GET /api/system/series", "read:system"],
  ["PUT /api/system/password", "write:system", "people"],
  ["POST /api/system/backup", "write:system", "people"],
  ["POST /api/system/rotate-key", "write:system", "people"],
  ["POST /api/system/resume", "write:system", "people"],
  ["GET /api/system/config", "write:system", "people"],
  ["POST /api/system/config/check", "write:system", "people"],

  ["GET /api/budgets", "read:budgets"],
  ["POST /api/budgets", "write:budgets"],
  ["GET /api/budgets/:id", "read:budgets"],
  ["PUT /api/budgets/:id", "write:budgets"],
  ["DELETE /api/budgets/:id", "write:budgets"],
  ["POST /api/budgets/:id/lift", "write:budgets"],
  ["GET /api/engines", "read:engines"],
  ["GET /api/engines/:name", "read:engines"],
  ["POST /api/engines/:name/lift", "write:engines"],

  ["GET /api/platforms", "read:platforms"],
  ["GET /api/platforms/:name", "read:platforms"],
  ["GET /api/platforms/:name/senders", "read:platforms"],
  ["POST /api/platforms/pair", "write:platforms"],
  ["DELETE /api/platforms/:name/senders/:sender", "write:platforms"],
  ["POST /api/platforms/:name/test", "write:platforms"],
  ["POST /hooks/:name", "public"],

  ["GET /api/webhooks", "read:webhooks"],
  ["POST /api/webhooks", "write:webhooks"],
  ["GET /api/webhooks/:id_or_name", "read:webhooks"],
  ["PUT /api/webhooks/:id_or_name", "write:webhooks"],
  ["DELETE /api/webhooks/:id_or_name", "write:webhooks"],
  ["POST /api/webhooks/:id_or_name/test", "write:webhooks"],
  ["GET /api/webhooks/:id_or_name/deliveries", "read:webhooks"],
  ["POST /api/webhooks/:id_or_name/replay", "write:webhooks"],
  ["GET /api/notices", "read:notices"],

  ["GET /api/fleet", "write:fleet"],
  ["POST /api/fleet/plan", "write:fleet"],
  ["POST /api/fleet/apply", "write:fleet"],

  ["GET /api/runners", "read:runners"],
  ["POST /api/runners", "write:runners"],
  ["GET /api/runners/:id_or_name", "read:runners"],
  ["DELETE /api/runners/:id_or_name", "write:runners"],
  ["POST /api/runners/:id_or_name/drain", "write:runners"],
  ["GET /api/launchers", "read:runners"],
  ["POST /api/launchers/:name/resume", "write:runners"],
  ["POST /api/runners/claim", "write:runs", "runners"],
  ["POST /api/runners/beat", "write:runs", "runners"],
  ["POST /api/runs/:id/log", "write:runs", "runners"],
  ["POST /api/runs/:id/events", "write:runs", "runners"],
  ["POST /api/runs/:id/end", "write:runs", "runners"],
  ["GET /api/runs/:id/media/:name", "write:runs", "runners"],
  ["GET /api/runs/:id/repo", "write:runs", "runners"],
  ["PUT /api/runs/:id/repo", "write:runs", "runners"],
];

/** Rules by operation, such as `GET /api/workers/:id`. */
export const RULES: ReadonlyMap<string, Rule> = new Map(
  TABLE.map(([operation, access, only]) => [operation, only === undefined ? { access } : { access, only }]),
);

/** Returns the rule of an operation. Throws when it has none. */
export function getRule(method: string, path: string): Rule {
  const rule = RULES.get(`${method} ${path}`);
  if (rule !== undefined) return rule;
  throw new Error(
    `Cannot start: the route ${method} ${path} is not in the table of rules in src/domain/call/access.ts`,
  );
}
