// Everything that interface.md 4, contract 5 and contract 6 name, written by hand. The test fails when one is missing.
import { describe, expect, it } from "vitest";
import { GROUPS, loadGroup } from "../../cli/commands/groups.ts";
import { ROUTES } from "../../src/http/app.ts";
import type { AnyRoute } from "../../src/http/route.ts";
import { loadContract } from "../harness/model/contract.ts";

// The methods of each path, with the status of a success if it is not 200.
const ENDPOINTS: Record<string, string> = {
  "/api/approvals": "GET, POST 201",
  "/api/approvals/:id/wait": "GET",
  "/api/approvals/:id/withdraw": "POST",
  "/api/audit": "GET",
  "/api/auth/console": "POST 201",
  "/api/auth/login": "POST",
  "/api/auth/logout": "POST 204",
  "/api/auth/oidc/callback": "GET 303",
  "/api/auth/oidc/start": "GET 303",
  "/api/auth/refresh": "POST",
  "/api/auth/whoami": "GET",
  "/api/budgets": "GET, POST 201",
  "/api/budgets/:id": "GET, PUT, DELETE",
  "/api/budgets/:id/lift": "POST",
  "/api/contexts": "GET, DELETE",
  "/api/contexts/:worker_id": "DELETE",
  "/api/conversations": "GET",
  "/api/departments": "GET, POST 201",
  "/api/departments/:id_or_name": "GET, PUT, DELETE",
  "/api/engines": "GET",
  "/api/engines/:name": "GET",
  "/api/engines/:name/lift": "POST",
  "/api/events": "GET",
  "/api/executions": "GET",
  "/api/executions/:id": "GET",
  "/api/executions/:id/cancel": "POST",
  "/api/executions/:id/logs": "GET",
  "/api/executions/:id/retry": "POST 201",
  "/api/executions/:id/steer": "POST 202",
  "/api/executions/:id/diff": "GET",
  "/api/executions/:id/push": "POST",
  "/api/executions/:id/discard": "POST",
  "/api/fleet": "GET",
  "/api/fleet/apply": "POST",
  "/api/fleet/plan": "POST",
  "/api/inbox": "GET",
  "/api/inbox/:kind/:id/dismiss": "POST",
  "/api/local/sessions": "POST 201, GET",
  "/api/local/sessions/:id": "DELETE, GET, PUT",
  "/api/local/sessions/:id/media": "POST",
  "/api/local/sessions/:id/media/:name": "GET",
  "/api/local/sessions/:id/messages": "POST 202, GET",
  "/api/local/sessions/:id/stream": "GET",
  "/api/memory": "GET",
  "/api/memory/entry": "GET, PUT, DELETE",
  "/api/messages": "POST 201",
  "/api/messages/:id/resend": "POST",
  "/api/messages/:id/trace": "GET",
  "/api/messages/explain": "POST",
  "/api/messages/inbound": "GET",
  "/api/messages/outbound": "GET",
  "/api/messages/resend": "POST",
  "/api/platforms": "GET",
  "/api/platforms/:name": "GET",
  "/api/platforms/:name/senders": "GET",
  "/api/platforms/:name/senders/:sender": "DELETE",
  "/api/platforms/:name/test": "POST",
  "/api/platforms/pair": "POST",
  "/api/questions": "POST 201, GET",
  "/api/questions/:id": "GET",
  "/api/questions/:id/answer": "POST",
  "/api/questions/:id/cancel": "POST",
  "/api/questions/:id/wait": "GET",
  "/api/push/devices": "GET, POST 201",
  "/api/push/devices/:id": "DELETE",
  "/api/push/key": "GET",
  "/api/queue": "GET",
  "/api/queue/cancel": "POST",
  "/api/launchers": "GET",
  "/api/launchers/:name/resume": "POST",
  "/api/runners": "GET, POST 201",
  "/api/runners/:id_or_name": "GET, DELETE",
  "/api/runners/:id_or_name/drain": "POST",
  "/api/runners/beat": "POST",
  "/api/runners/claim": "POST",
  "/api/runs/:id/end": "POST",
  "/api/runs/:id/events": "POST",
  "/api/runs/:id/log": "POST",
  "/api/runs/:id/media/:name": "GET",
  "/api/runs/:id/repo": "GET, PUT",
  "/api/schedules": "GET",
  "/api/schedules/preview": "GET",
  "/api/secrets": "GET",
  "/api/secrets/:name": "GET, PUT, DELETE",
  "/api/recall": "GET",
  "/api/search": "GET",
  "/api/sessions/:sessionId/executions": "GET",
  "/api/system/backup": "POST",
  "/api/system/config": "GET",
  "/api/system/config/check": "POST",
  "/api/system/doctor": "GET",
  "/api/system/executions": "GET",
  "/api/system/overview": "GET",
  "/api/system/password": "PUT",
  "/api/system/resume": "POST",
  "/api/system/rotate-key": "POST",
  "/api/system/series": "GET",
  "/api/tasks": "GET, POST 201",
  "/api/tasks/:id": "GET, PUT",
  "/api/tasks/:id/cancel": "POST",
  "/api/tasks/:id/run": "POST",
  "/api/tasks/:id/retry": "POST",
  "/api/tasks/:id/wait": "GET",
  "/api/tasks/batch": "POST 201",
  "/api/tokens": "GET, POST 201",
  "/api/tokens/:id": "DELETE",
  "/api/usage": "GET",
  "/api/usage/workers": "GET",
  "/api/users": "GET, POST 201",
  "/api/users/:id_or_name": "GET, PUT, DELETE",
  "/api/users/:id_or_name/password": "PUT",
  "/api/webhooks": "GET, POST 201",
  "/api/webhooks/:id_or_name": "GET, PUT, DELETE",
  "/api/webhooks/:id_or_name/deliveries": "GET",
  "/api/webhooks/:id_or_name/replay": "POST",
  "/api/webhooks/:id_or_name/test": "POST",
  "/api/workers": "POST 201, GET",
  "/api/workers/:id": "GET, PUT, DELETE",
  "/api/workers/:id/executions": "GET",
  "/api/workers/:id/rehome": "POST",
  "/api/workers/:id/skills/check": "POST",
  "/api/workers/:id/trees": "GET",
  "/api/workers/:id/status": "GET",
  "/hooks/:name": "POST 202",
  "/v1/chat/completions": "POST",
  "/v1/models": "GET",
};

const PAGE = "page page-size";
const CHECK = "verify verify-timeout verify-attempts";
const SETTINGS =
  `name time-zone gate gate-timeout ${CHECK} overlap pause-after-failures deliver-to until max-runs`;

// Flags of each command. "!" marks a required flag; arguments are in angle brackets.
const COMMANDS: Record<string, string> = {
  // interface 4.2
  "worker list": `department no-recursive name id ${PAGE}`,
  "worker get": "<id>",
  "worker status": "<id>",
  "worker create":
    `name! description constraints memory work-dir engine department scopes engine-args runs-on env ${CHECK}`,
  "worker update":
    `<id> name description constraints memory engine department scopes engine-args runs-on env ${CHECK}`,
  "worker delete": "<id> delete-work-dir",
  "task list": `session-key message-id worker-id after tree status type ${PAGE}`,
  "task create":
    "message-id! worker-id! instruction! type! scheduled-at cron time-zone after after-when wait timeout idempotency-key batch",
  "task cancel": "<id>",
  "memory get": "scope! key",
  "memory save": "scope! key! value!",
  "memory delete": "scope! key!",
  "session list": `session-key! ${PAGE}`,
  "session approvals": `session-key! ${PAGE}`,
  "session clear": "session-key! force yes",
  "session clear-worker": "session-key! worker-id!",
  "execution list": `worker-id session-id status started-from started-to completed-from completed-to ${PAGE}`,
  "department list": "",
  "department get": "<id|name>",
  "department create": "name! parent sort-order",
  "department update": "<id|name> name parent sort-order",
  "department delete": "<id|name>",
  "message send": "message-id! stdin media-path",
  "message list": `session-key platform status received-from received-to ${PAGE}`,
  "message list-outbound":
    `session-key platform status source-type worker source-id sent-from sent-to ${PAGE}`,
  "system overview": "",
  "system rotate-key": "yes",
  "system executions": "limit",
  // contract 6
  "system doctor": "",
  "system backup": "<file> force include-key password-stdin",
  // contract 8.16
  "system config": "",
  "system check-config": "<file|->",
  "system resume": "",
  "system password": "stdin",
  "worker pause": "<id>",
  "worker resume": "<id>",
  "task get": "<id>",
  "task run": "<id>",
  "task retry": "<id>",
  "task wait": "<id> timeout",
  "execution get": "<id>",
  "execution logs": "<id> follow tail",
  "execution cancel": "<id>",
  "message trace": "<id>",
  "message resend": "[id] platform since",
  "events": "follow after",
  "chat": "[text|-] session last worker reply-to timeout",
  "run": "<worker> <text|-> in at cron session no-wait timeout",
  // contract 11
  "webhook list": PAGE,
  "webhook get": "<id|name>",
  "webhook create": "name! url! events!",
  "webhook update": "<id|name> url events enable disable",
  "webhook delete": "<id|name>",
  "webhook test": "<id|name>",
  "webhook deliveries": `<id|name> ${PAGE}`,
  "webhook replay": "<id|name> after!",
  // contract 10
  "platform list": "",
  "platform get": "<name>",
  "platform test": "<name>",
  "platform senders": "<name>",
  "platform pair": "<code> yes",
  "platform revoke": "<name> <sender>",
  // contract 14, contract 17
  "execution retry": "<id>",
  // contract 23
  "execution steer": "<id> <text|->",
  // contract 26
  "execution diff": "<id> stat since",
  "execution push": "<id>",
  "execution discard": "<id> yes",
  "worker trees": `<id> ${PAGE}`,
  // contract 15
  "schedule list": `status worker-id paused failing ${PAGE}`,
  "schedule get": "<id>",
  "schedule create": `worker! instruction! cron at in message-id paused ${SETTINGS}`,
  "schedule update": `<id> worker instruction cron at ${SETTINGS}`,
  "schedule pause": "<id>",
  "schedule resume": "<id>",
  "schedule run": "<id> wait timeout",
  "schedule preview": "<cron> time-zone count",
  "schedule delete": "<id>",
  "queue list": `session-key worker-id status type ${PAGE}`,
  "queue cancel": "expected! worker-id session-key status type",
  "route explain": "<text|-> session-key",
  "export": "",
  "apply": "file! dry-run prune adopt plan force",
  "diff": "file!",
  // contract 34
  "import openclaw": "<dir> dry-run with-secrets",
  "import hermes": "<dir> dry-run with-secrets",
  // contract 31
  "search": "<words...> in worker-id session-key since cursor",
  "conversation list": `session-key platform ${PAGE}`,
  "engine list": "",
  "engine get": "<name>",
  "engine lift": "<name>",
  "budget list": `target ${PAGE}`,
  "budget get": "<id|name>",
  "budget create": "name! target unit! limit! period! soft action",
  "budget update": "<id|name> name target unit limit period soft action",
  "budget delete": "<id|name>",
  "budget lift": "<id|name> for",
  // contract 18
  "runner list": PAGE,
  "runner get": "<id|name>",
  "runner add": "<name> labels allow-admin token-file",
  "runner drain": "<id|name> undo",
  "runner remove": "<id|name>",
  "worker rehome": "<id> to",
  // contract 33
  "launcher list": "",
  "launcher resume": "<name>",
  "usage": "by since",
  "inbox list": "since",
  "inbox dismiss": "[id] kind until since",
  "worker activity": "days",
  "ask": "<text|-> option default timeout wait message-id",
  "question list": `status session-key worker-id ${PAGE}`,
  "question get": "<id>",
  "question answer": "<id> <text|->",
  "question cancel": "<id>",
  // contract 9
  "login": "[url] username password-stdin",
  "logout": "[url]",
  "whoami": "",
  "context list": "",
  "context use": "<url>",
  "console": "print",
  "user list": `role ${PAGE}`,
  "user get": "<id|name>",
  "user create": "name! role! password-stdin",
  "user update": "<id|name> name role",
  "user disable": "<id|name>",
  "user enable": "<id|name>",
  "user password": "<id|name> stdin",
  "user delete": "<id|name>",
  "token list": `user ${PAGE}`,
  "token create": "name! scopes! expires-in token-file",
  "token delete": "<id>",
  "device list": `user ${PAGE}`,
  "device delete": "<id>",
  "secret list": PAGE,
  "skill list": "<worker>",
  "skill add": "<worker> <url> ref path",
  "skill update": "<worker> [name] ref",
  "skill remove": "<worker> <name>",
  "mcp list": "<worker>",
  "mcp add": "<worker> <name> [command...] url env header",
  "mcp remove": "<worker> <name>",
  "secret get": "<secret>",
  "secret set": "<secret> stdin file worker",
  "secret grant": "<secret> worker!",
  "secret revoke": "<secret> worker!",
  "secret delete": "<secret>",
  "audit": "after actor kind from to",
  "config path": "",
  "config show": "",
  "config validate": "",
  "config schema": "",
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
    for (const [row, status] of listEndpoints()) {
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
    for (const [row, words] of Object.entries(COMMANDS)) {
      const wanted = words.split(" ").filter((word) => word !== "");
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
    const known = new Set(listEndpoints().map(([row]) => row));
    expect(
      (ROUTES as readonly AnyRoute[]).map((one) => `${one.method} ${one.path}`).filter((row) =>
        !known.has(row)
      ),
    )
      .toEqual([]);
  });
});

function listEndpoints(): [route: string, status: number][] {
  return Object.entries(ENDPOINTS).flatMap(([path, methods]) =>
    methods.split(", ").map((one): [string, number] => {
      const [method, status = "200"] = one.split(" ");
      return [`${method} ${path}`, Number(status)];
    })
  );
}

async function findCommand(row: string) {
  const [name = "", command] = row.split(" ");
  const group = name in GROUPS ? await loadGroup(name) : [];
  return Array.isArray(group) ? group.find((spec) => spec.name === command) : group;
}
