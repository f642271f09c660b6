// Everything that interface.md 4, contract 5 and contract 6 name, written by hand. The test fails when one is missing.
import { describe, expect, it } from "vitest";
import { GROUPS, loadGroup } from "../../cli/commands/groups.ts";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { loadContract } from "../harness/model/contract.ts";

const ENDPOINTS: [route: string, status: number][] = [
  // interface 4.1
  ["POST /api/auth/login", 200],
  ["POST /api/auth/refresh", 200],
  ["POST /api/workers", 201],
  ["GET /api/workers", 200],
  ["GET /api/workers/:id", 200],
  ["PUT /api/workers/:id", 200],
  ["DELETE /api/workers/:id", 200],
  ["GET /api/executions", 200],
  ["GET /api/executions/:id", 200],
  ["GET /api/executions/:id/logs", 200],
  ["GET /api/workers/:id/executions", 200],
  ["GET /api/sessions/:sessionId/executions", 200],
  ["POST /api/local/sessions", 201],
  ["GET /api/local/sessions", 200],
  ["DELETE /api/local/sessions/:id", 200],
  ["POST /api/local/sessions/:id/messages", 202],
  ["GET /api/local/sessions/:id/messages", 200],
  ["POST /api/local/sessions/:id/media", 200],
  ["GET /api/local/sessions/:id/stream", 200],
  // contract 5
  ["POST /api/auth/logout", 204],
  ["GET /api/workers/:id/status", 200],
  ["GET /api/tasks", 200],
  ["POST /api/tasks", 201],
  ["POST /api/tasks/batch", 201],
  ["GET /api/tasks/:id", 200],
  ["POST /api/tasks/:id/cancel", 200],
  ["POST /api/tasks/:id/run", 200],
  ["GET /api/tasks/:id/wait", 200],
  ["POST /api/executions/:id/cancel", 200],
  ["GET /api/local/sessions/:id", 200],
  ["PUT /api/local/sessions/:id", 200],
  ["GET /api/local/sessions/:id/media/:name", 200],
  ["GET /api/memory", 200],
  ["GET /api/memory/entry", 200],
  ["PUT /api/memory/entry", 200],
  ["DELETE /api/memory/entry", 200],
  ["GET /api/contexts", 200],
  ["DELETE /api/contexts", 200],
  ["DELETE /api/contexts/:worker_id", 200],
  ["GET /api/departments", 200],
  ["POST /api/departments", 201],
  ["GET /api/departments/:id_or_name", 200],
  ["PUT /api/departments/:id_or_name", 200],
  ["DELETE /api/departments/:id_or_name", 200],
  ["POST /api/messages", 201],
  ["GET /api/messages/inbound", 200],
  ["GET /api/messages/outbound", 200],
  ["GET /api/messages/:id/trace", 200],
  ["GET /api/events", 200],
  ["GET /api/system/overview", 200],
  ["GET /api/system/executions", 200],
  // contract 9
  ["GET /api/auth/whoami", 200],
  ["POST /api/auth/console", 201],
  ["GET /api/auth/oidc/start", 303],
  ["GET /api/auth/oidc/callback", 303],
  ["GET /api/users", 200],
  ["POST /api/users", 201],
  ["GET /api/users/:id_or_name", 200],
  ["PUT /api/users/:id_or_name", 200],
  ["DELETE /api/users/:id_or_name", 200],
  ["PUT /api/users/:id_or_name/password", 200],
  ["GET /api/tokens", 200],
  ["POST /api/tokens", 201],
  ["DELETE /api/tokens/:id", 200],
  ["GET /api/audit", 200],
  ["POST /api/system/rotate-key", 200],
  // contract 11
  ["GET /api/webhooks", 200],
  ["POST /api/webhooks", 201],
  ["GET /api/webhooks/:id_or_name", 200],
  ["PUT /api/webhooks/:id_or_name", 200],
  ["DELETE /api/webhooks/:id_or_name", 200],
  ["POST /api/webhooks/:id_or_name/test", 200],
  ["GET /api/webhooks/:id_or_name/deliveries", 200],
  ["POST /api/webhooks/:id_or_name/replay", 200],
  // contract 10
  ["POST /hooks/:name", 202],
  ["POST /api/messages/:id/resend", 200],
  ["POST /api/messages/resend", 200],
  ["GET /api/platforms", 200],
  ["GET /api/platforms/:name", 200],
  ["GET /api/platforms/:name/senders", 200],
  ["POST /api/platforms/pair", 200],
  ["DELETE /api/platforms/:name/senders/:sender", 200],
  ["POST /api/platforms/:name/test", 200],
  // contract 14, contract 17
  ["GET /api/engines", 200],
  ["GET /api/engines/:name", 200],
  ["POST /api/engines/:name/lift", 200],
  ["GET /api/budgets", 200],
  ["POST /api/budgets", 201],
  ["GET /api/budgets/:id", 200],
  ["PUT /api/budgets/:id", 200],
  ["DELETE /api/budgets/:id", 200],
  ["POST /api/budgets/:id/lift", 200],
  // contract 18
  ["GET /api/runners", 200],
  ["POST /api/runners", 201],
  ["GET /api/runners/:id_or_name", 200],
  ["DELETE /api/runners/:id_or_name", 200],
  ["POST /api/runners/:id_or_name/drain", 200],
  ["POST /api/workers/:id/rehome", 200],
  ["POST /api/runners/claim", 200],
  ["POST /api/runners/beat", 200],
  ["POST /api/runs/:id/log", 200],
  ["POST /api/runs/:id/events", 200],
  ["POST /api/runs/:id/end", 200],
  ["GET /api/runs/:id/media/:name", 200],
  ["GET /api/queue", 200],
  ["GET /api/conversations", 200],
  // contract 16
  ["GET /api/fleet", 200],
  ["POST /api/messages/explain", 200],
  ["POST /api/fleet/plan", 200],
  ["POST /api/fleet/apply", 200],
  // contract 12
  ["POST /api/questions", 201],
  ["GET /api/questions", 200],
  ["GET /api/questions/:id", 200],
  ["GET /api/questions/:id/wait", 200],
  ["POST /api/questions/:id/answer", 200],
  ["POST /api/questions/:id/cancel", 200],
  ["GET /api/inbox", 200],
  ["POST /api/queue/cancel", 200],
  ["GET /api/schedules", 200],
  ["GET /api/schedules/preview", 200],
  ["PUT /api/tasks/:id", 200],
  ["POST /api/executions/:id/retry", 201],
  ["GET /api/usage", 200],
  ["GET /api/system/series", 200],
  ["GET /api/system/doctor", 200],
  ["PUT /api/system/password", 200],
  ["POST /api/system/backup", 200],
  // contract 8.16
  ["POST /api/system/resume", 200],
];

const PAGE = ["page", "page-size"];
const SESSION_KEY = ["session-key!"];
const CHECK = ["verify", "verify-timeout", "verify-attempts"];
const SETTINGS = [
  ...["name", "time-zone", "gate", "gate-timeout", ...CHECK],
  ...["overlap", "pause-after-failures", "deliver-to", "until", "max-runs"],
];

// Flags of each command. "!" marks a required flag; arguments are in angle brackets.
const COMMANDS: Record<string, string[]> = {
  // interface 4.2
  "worker list": ["department", "no-recursive", "name", "id", ...PAGE],
  "worker get": ["<id>"],
  "worker status": ["<id>"],
  "worker create": [
    "name!",
    "description",
    "constraints",
    "memory",
    "work-dir",
    "engine",
    "department",
    "scopes",
    "engine-args",
    "runs-on",
    ...CHECK,
  ],
  "worker update": [
    "<id>",
    "name",
    "description",
    "constraints",
    "memory",
    "engine",
    "department",
    "scopes",
    "engine-args",
    "runs-on",
    ...CHECK,
  ],
  "worker delete": ["<id>", "delete-work-dir"],
  "task list": ["session-key", "message-id", "worker-id", "status", "type", ...PAGE],
  "task create": [
    "message-id!",
    "worker-id!",
    "instruction!",
    "type!",
    "scheduled-at",
    "cron",
    "time-zone",
    "wait",
    "timeout",
    "idempotency-key",
    "batch",
  ],
  "task cancel": ["<id>"],
  "memory get": ["scope!", "key"],
  "memory save": ["scope!", "key!", "value!"],
  "memory delete": ["scope!", "key!"],
  "session list": [...SESSION_KEY, ...PAGE],
  "session clear": [...SESSION_KEY, "force", "yes"],
  "session clear-worker": [...SESSION_KEY, "worker-id!"],
  "execution list": [
    "worker-id",
    "session-id",
    "status",
    "started-from",
    "started-to",
    "completed-from",
    "completed-to",
    ...PAGE,
  ],
  "department list": [],
  "department get": ["<id|name>"],
  "department create": ["name!", "parent", "sort-order"],
  "department update": ["<id|name>", "name", "parent", "sort-order"],
  "department delete": ["<id|name>"],
  "message send": ["message-id!", "stdin", "media-path"],
  "message list": ["session-key", "platform", "status", "received-from", "received-to", ...PAGE],
  "message list-outbound": [
    "session-key",
    "platform",
    "status",
    "source-type",
    "source-id",
    "sent-from",
    "sent-to",
    ...PAGE,
  ],
  "system overview": [],
  "system rotate-key": ["yes"],
  "system executions": ["limit"],
  // contract 6
  "system doctor": [],
  "system backup": ["<file>", "force", "include-key", "password-stdin"],
  // contract 8.16
  "system resume": [],
  "system password": ["stdin"],
  "worker pause": ["<id>"],
  "worker resume": ["<id>"],
  "task get": ["<id>"],
  "task run": ["<id>"],
  "task wait": ["<id>", "timeout"],
  "execution get": ["<id>"],
  "execution logs": ["<id>", "follow", "tail"],
  "execution cancel": ["<id>"],
  "message trace": ["<id>"],
  "message resend": ["[id]", "platform", "since"],
  "events": ["follow", "after"],
  "chat": ["[text|-]", "session", "last", "worker", "reply-to", "timeout"],
  "run": ["<worker>", "<text|->", "in", "at", "cron", "session", "no-wait", "timeout"],
  // contract 11
  "webhook list": PAGE,
  "webhook get": ["<id|name>"],
  "webhook create": ["name!", "url!", "events!"],
  "webhook update": ["<id|name>", "url", "events", "enable", "disable"],
  "webhook delete": ["<id|name>"],
  "webhook test": ["<id|name>"],
  "webhook deliveries": ["<id|name>", ...PAGE],
  "webhook replay": ["<id|name>", "after!"],
  // contract 10
  "platform list": [],
  "platform get": ["<name>"],
  "platform test": ["<name>"],
  "platform senders": ["<name>"],
  "platform pair": ["<code>", "yes"],
  "platform revoke": ["<name>", "<sender>"],
  // contract 14, contract 17
  "execution retry": ["<id>"],
  // contract 15
  "schedule list": ["status", "worker-id", "paused", "failing", ...PAGE],
  "schedule get": ["<id>"],
  "schedule create": ["worker!", "instruction!", "cron", "at", "in", "message-id", "paused", ...SETTINGS],
  "schedule update": ["<id>", "worker", "instruction", "cron", "at", ...SETTINGS],
  "schedule pause": ["<id>"],
  "schedule resume": ["<id>"],
  "schedule run": ["<id>", "wait", "timeout"],
  "schedule preview": ["<cron>", "time-zone", "count"],
  "schedule delete": ["<id>"],
  "queue list": ["session-key", "worker-id", "status", "type", ...PAGE],
  "queue cancel": ["expected!", "worker-id", "session-key", "status", "type"],
  "route explain": ["<text|->", "session-key"],
  "export": [],
  "apply": ["file!", "dry-run", "prune", "adopt", "plan", "force"],
  "diff": ["file!"],
  "conversation list": ["session-key", "platform", ...PAGE],
  "engine list": [],
  "engine get": ["<name>"],
  "engine lift": ["<name>"],
  "budget list": ["target", ...PAGE],
  "budget get": ["<id|name>"],
  "budget create": ["name!", "target", "unit!", "limit!", "period!", "soft", "action"],
  "budget update": ["<id|name>", "name", "target", "unit", "limit", "period", "soft", "action"],
  "budget delete": ["<id|name>"],
  "budget lift": ["<id|name>", "for"],
  // contract 18
  "runner list": PAGE,
  "runner get": ["<id|name>"],
  "runner add": ["<name>", "labels", "allow-admin", "token-file"],
  "runner drain": ["<id|name>", "undo"],
  "runner remove": ["<id|name>"],
  "worker rehome": ["<id>", "to"],
  "usage": ["by", "since"],
  "inbox": ["since"],
  "ask": ["<text|->", "option", "default", "timeout", "wait", "message-id"],
  "question list": ["status", "session-key", "worker-id", ...PAGE],
  "question get": ["<id>"],
  "question answer": ["<id>", "<text|->"],
  "question cancel": ["<id>"],
  // contract 9
  "login": ["[url]", "username", "password-stdin"],
  "logout": ["[url]"],
  "whoami": [],
  "context list": [],
  "context use": ["<url>"],
  "console": ["print"],
  "user list": ["role", ...PAGE],
  "user get": ["<id|name>"],
  "user create": ["name!", "role!", "password-stdin"],
  "user update": ["<id|name>", "name", "role"],
  "user disable": ["<id|name>"],
  "user enable": ["<id|name>"],
  "user password": ["<id|name>", "stdin"],
  "user delete": ["<id|name>"],
  "token list": ["user", ...PAGE],
  "token create": ["name!", "scopes!", "expires-in", "token-file"],
  "token delete": ["<id>"],
  "audit": ["after", "actor", "kind", "from", "to"],
  "config path": [],
  "config show": [],
  "config validate": [],
  "config schema": [],
};

const SHORT: Record<string, string> = {
  "worker create name": "-n",
  "department create name": "-n",
  "webhook create name": "-n",
  "execution logs follow": "-f",
  "events follow": "-f",
};

describe("the interface, row by row (interface 4, contract 5, contract 6)", () => {
  it("every endpoint exists, returns its status, requires a scope and is documented", async () => {
    const { document } = await loadContract();
    const routes = new Map((ROUTES as readonly AnyRoute[]).map((one) => [`${one.method} ${one.path}`, one]));
    for (const [row, status] of ENDPOINTS) {
      const route = routes.get(row);
      expect([row, route?.status ?? 200]).toEqual([row, status]);
      expect([row, route?.summary]).toEqual([row, expect.stringMatching(/^[A-Z].{5,}/)]);
      const operation = document.paths[row.split(" ")[1]?.replace(/:(\w+)/g, "{$1}") ?? ""]
        ?.[row.split(" ")[0]?.toLowerCase() ?? ""];
      expect([row, operation?.operationId]).toEqual([row, route?.operation]);
      expect(Object.keys(operation?.responses ?? {})).toEqual(
        expect.arrayContaining([String(status), "400", "500"]),
      );
    }
  });

  it("every command exists with its flags, each with a description", async () => {
    for (const [row, wanted] of Object.entries(COMMANDS)) {
      const spec = await findCommand(row);
      expect([row, spec?.about]).toEqual([row, expect.stringMatching(/^[A-Z].{5,}/)]);
      expect([row, (spec?.examples ?? []).length]).not.toEqual([row, 0]);
      const args = wanted.filter((one) => /^[<[]/.test(one)).map((one) => one.replace(/^<(.*)>$/, "$1"));
      expect([row, spec?.args ?? []]).toEqual([row, args]);
      const options = Object.values(spec?.options ?? {});
      for (const flag of wanted.filter((one) => !/^[<[]/.test(one))) {
        const name = flag.replace("!", "");
        const option = options.find((one) => one.flags.split(/[ ,]+/).includes(`--${name}`));
        expect([row, flag, option?.about]).toEqual([row, flag, expect.stringMatching(/^.{5,}/)]);
        expect([row, flag, option?.required ?? false]).toEqual([row, flag, flag.endsWith("!")]);
        const short = SHORT[`${row} ${name}`];
        if (short !== undefined) expect(option?.flags).toContain(`${short}, `);
      }
    }
  });

  it("every group and command is in the table", async () => {
    for (const name of Object.keys(GROUPS)) {
      const group = await loadGroup(name);
      const rows = Array.isArray(group) ? group.map((spec) => `${name} ${spec.name}`) : [name];
      expect(Object.keys(COMMANDS)).toEqual(expect.arrayContaining(rows));
    }
    const known = new Set(ENDPOINTS.map(([row]) => row));
    expect(
      (ROUTES as readonly AnyRoute[]).map((one) => `${one.method} ${one.path}`).filter((row) =>
        !known.has(row)
      ),
    )
      .toEqual([]);
  });
});

async function findCommand(row: string) {
  const [name = "", command] = row.split(" ");
  const group = name in GROUPS ? await loadGroup(name) : [];
  return Array.isArray(group) ? group.find((spec) => spec.name === command) : group;
}
