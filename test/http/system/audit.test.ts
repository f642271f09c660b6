import { digest } from "../../../src/base/bytes.ts";
import { insertPairing } from "../../../src/store/chat/platform.ts";
import { storeSetting } from "../../../src/store/db/setting.ts";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../../src/http/app.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { buildBearer, SUBSCRIPTION } from "../../harness/model/people.ts";
import type { Json } from "../../harness/service/client.ts";
import { createTask } from "../../harness/service/runner.ts";
import { createRepository } from "../../harness/service/git_server.ts";
import { createTempDir } from "../../harness/service/process.ts";
import { upload } from "../requests.ts";
import { startRun } from "../../harness/service/run.ts";

// Access tokens and codes are not stored. The journal records their login.
const CHANGES_NOTHING = [
  "POST /api/fleet/plan",
  "POST /api/messages/explain",
  "POST /api/system/config/check",
  "POST /api/workers/:id/skills/check",
  "POST /api/auth/refresh",
  "POST /api/auth/console",
  // Reports of a runner are events of the run.
  "POST /api/runners/claim",
  "POST /api/runners/beat",
  "POST /api/runs/:id/log",
  "POST /api/runs/:id/events",
  "POST /api/runs/:id/end",
  "PUT /api/runs/:id/repo",
  // The engine of a run opens a question, whose event names its worker (test/approval).
  "POST /api/approvals",
  "POST /api/approvals/:id/withdraw",
];

describe("the audit trail (contract 4, Journal)", () => {
  it("names the actor and the address of every change", async () => {
    const platforms = { alerts: { kind: "webhook" as const, worker: "Ada" } };
    const launchers = { slurm: { labels: ["gpu"], command: ["false"] } };
    await using app = await openApp({
      config: { engines: buildFakeEngines(), auth: { password_hash: "" }, platforms, launchers },
    });
    const missing: string[] = [];
    const tried = new Set<string>();
    // Every changing route is here with the event that it must write.
    const watch = async (kind: string, route: string, send: () => Promise<Json>) => {
      const before = await app.db.first<{ seq: number }>("select coalesce(max(seq), 0) as seq from journal");
      const answer = await send();
      const rows = await app.db.read(
        "select actor from journal where seq > ? and kind = ? and actor = 'user:admin' and address = '127.0.0.1'",
        [before?.seq ?? 0, kind],
      );
      if (rows.length === 0) missing.push(`${route} -> ${kind}`);
      tried.add(findRoute(route));
      return answer;
    };
    const change = (kind: string, route: string, body?: unknown) =>
      watch(kind, route, () => app.call(route, body));

    const password = app.server.generatedPassword;
    const login = await change("auth.login", "POST /api/auth/login", { username: "admin", password });
    await change("auth.logout", "POST /api/auth/logout", { refresh_token: login.refresh_token });
    await change("system.key_rotated", "POST /api/system/rotate-key", {});

    await change("department.created", "POST /api/departments", { name: "Lab" });
    await change("department.updated", "PUT /api/departments/Lab", { sort_order: 2 });
    const worker = await change("worker.created", "POST /api/workers", { name: "Ada" });
    await change("worker.updated", `PUT /api/workers/${worker.id}`, { description: "first" });
    await change("memory.saved", "PUT /api/memory/entry", { scope: "global", key: "k", value: "v" });
    await change("memory.deleted", "DELETE /api/memory/entry?scope=global&key=k");

    const chat = await change("chat.created", "POST /api/local/sessions", { worker_id: worker.id });
    const session = `/api/local/sessions/${chat.id}`;
    await change("chat.updated", `PUT ${session}`, { name: "x" });
    const { message_id } = await change("message.received", `POST ${session}/messages`, {
      content: "say hi",
    });
    await app.settle();
    await watch("upload.stored", `POST ${session}/media`, () => upload(app, chat.id, "x"));
    await change("message.sent", "POST /api/messages", { message_id, content: "hello" });
    const failMessages = { sql: "update outbound_message set status = 'failed', due_at = null", args: [] };
    await app.db.write([failMessages]);
    const [failed] = await app.call("GET /api/messages/outbound");
    await change("message.resent", `POST /api/messages/${failed.id}/resend`, {});
    await app.db.write([failMessages]);
    await change("message.resent", "POST /api/messages/resend", { platform: "local" });

    const plan = {
      ...{ message_id: "m", worker_id: worker.id, instruction: "sleep 60" },
      ...{ type: "scheduled", cron: "0 0 1 1 *" },
    };
    const task = await change("task.created", "POST /api/tasks", plan);
    await change("task.created", "POST /api/tasks/batch", { tasks: [plan, plan] });
    await change("task.updated", `PUT /api/tasks/${task.id}`, { name: "x" });
    await change("task.due", `POST /api/tasks/${task.id}/run`, {});
    await change("task.cancelled", `POST /api/tasks/${task.id}/cancel`, {});
    const late = { ...plan, type: "countdown", cron: undefined, scheduled_at: Date.now() + 60_000 };
    const { id: lateId } = await app.call("POST /api/tasks", late);
    await app.call(`POST /api/tasks/${lateId}/cancel`, {});
    await change("task.retried", `POST /api/tasks/${lateId}/retry`, {});
    await app.call(`POST /api/tasks/${lateId}/cancel`, {});
    const run = await startRun(app);
    await change("execution.cancelling", `POST /api/executions/${run.executionId}/cancel`, {});
    await change("context.cleared", `DELETE /api/contexts/${worker.id}?session_key=local:${chat.id}`);
    await change("session.cleared", `DELETE /api/contexts?session_key=local:${chat.id}`);
    await change("chat.deleted", `DELETE ${session}`);
    await change("worker.deleted", `DELETE /api/workers/${worker.id}`);
    await change("department.deleted", "DELETE /api/departments/Lab");
    const { executionId } = await startRun(app, [], "Retried");
    await app.call(`POST /api/executions/${executionId}/cancel`, {});
    await change("task.created", `POST /api/executions/${executionId}/retry`, {});
    await change("execution.steered", `POST /api/executions/${executionId}/steer`, { content: "and this" });
    await using folder = await createTempDir();
    const repo = { path: await createRepository(folder.path) };
    const coder = await app.call("POST /api/workers", { name: "Coder", repo });
    const tree = await createTask(app, coder.id, "touch made.txt");
    const made = await app.call(`GET /api/tasks/${tree}/wait?timeout_ms=20000`);
    const changed = `/api/executions/${made.execution_id}`;
    await change("tree.push_requested", `POST ${changed}/push`, {});
    await change("tree.discarded", `POST ${changed}/discard`, {});
    await change("fleet.applied", "POST /api/fleet/apply", { fleet: { memory: { tone: "friendly" } } });
    const paused = await app.call("POST /api/workers", { name: "Paused", paused: true });
    await createTask(app, paused.id, "sleep 60");
    await change("task.cancelled", "POST /api/queue/cancel", {
      filter: { worker_id: paused.id },
      expected: 1,
    });

    await change("inbox.dismissed", `POST /api/inbox/worker_paused/${paused.id}/dismiss`, {
      until: Date.now() + 60_000,
    });
    await change("secret.created", "PUT /api/secrets/key", { value: "a secret value" });
    await change("secret.deleted", "DELETE /api/secrets/key");

    const limit = { name: "Day", unit: "runs", limit: 1_000, period: "24h" };
    const budget = await change("budget.created", "POST /api/budgets", limit);
    await change("budget.updated", `PUT /api/budgets/${budget.id}`, { limit: 2_000 });
    await change("budget.lifted", `POST /api/budgets/${budget.id}/lift`, { for_ms: 1_000 });
    await change("budget.deleted", `DELETE /api/budgets/${budget.id}`);
    await change("engine.lifted", "POST /api/engines/echo/lift");
    await app.db.write([{
      sql: "insert into launcher (name, failures, paused_at) values ('slurm', 5, 1)",
      args: [],
    }]);
    await change("launcher.resumed", "POST /api/launchers/slurm/resume");
    await change("runner.created", "POST /api/runners", { name: "mac1", labels: ["gpu"] });
    await change("runner.updated", "POST /api/runners/mac1/drain", {});
    const away = await app.call("POST /api/workers", { name: "Away", runs_on: ["gpu"] });
    await change("worker.updated", `POST /api/workers/${away.id}/rehome`, { home: "mac1" });
    await change("runner.deleted", "DELETE /api/runners/mac1");

    const eve = { name: "Eve", role: "viewer", password: "a long enough word" };
    await change("user.created", "POST /api/users", eve);
    await change("user.updated", "PUT /api/users/Eve", { role: "operator" });
    await change("user.password_changed", "PUT /api/users/Eve/password", { password: "another long word" });
    await change("user.deleted", "DELETE /api/users/Eve");
    const token = await change("token.created", "POST /api/tokens", { name: "ci", scopes: ["read:*"] });
    await change("token.deleted", `DELETE /api/tokens/${token.id}`);

    const again = await app.call("POST /api/auth/login", { username: "admin", password });
    const device = await watch(
      "device.created",
      "POST /api/push/devices",
      () =>
        app.call("POST /api/push/devices", { ...SUBSCRIPTION, tell: {} }, buildBearer(again.access_token)),
    );
    await change("device.deleted", `DELETE /api/push/devices/${device.id}`);

    const ask = { message_id: "m", text: "Which?" };
    const question = await change("question.opened", "POST /api/questions", ask);
    await change("question.answered", `POST /api/questions/${question.id}/answer`, { answer: "This" });
    const { id: open } = await app.call("POST /api/questions", ask);
    await change("question.cancelled", `POST /api/questions/${open}/cancel`, {});
    const webhook = { name: "w", url: "https://127.0.0.1:1/", events: ["task.*"] };
    await change("webhook.created", "POST /api/webhooks", webhook);
    await change("webhook.updated", "PUT /api/webhooks/w", { enabled: false });
    await change("webhook.tested", "POST /api/webhooks/w/test");
    await change("webhook.replayed", "POST /api/webhooks/w/replay", { after: 0 });
    await change("webhook.deleted", "DELETE /api/webhooks/w");
    await change("message.received", "POST /hooks/alerts", { id: 1, text: "hello" });
    await app.call("POST /api/workers", { name: "Model" });
    const completion = { model: "Model", messages: [{ role: "user", content: "say hello" }] };
    await change("message.received", "POST /v1/chat/completions", completion);
    const row = { platform: "alerts", sender: "s", name: "Eve", code_hash: digest("ABCD2345") };
    await app.db.write(insertPairing({ ...row, created_at: Date.now(), expires_at: Date.now() + 60_000 }));
    await change("platform.paired", "POST /api/platforms/pair", { code: "abcd-2345", sender: "s" });
    await change("platform.revoked", "DELETE /api/platforms/alerts/senders/s");
    await change("platform.tested", "POST /api/platforms/alerts/test", {});

    await change("system.backup", "POST /api/system/backup", {});
    await app.db.write([storeSetting("schedules_paused", "1")]);
    await change("system.resumed", "POST /api/system/resume");
    const words = { current_password: password, new_password: "another-password-9" };
    await change("auth.password_changed", "PUT /api/system/password", words);

    expect(missing).toEqual([]);
    const changing = ROUTES.filter((route) => route.method !== "GET");
    expect([...tried, ...CHANGES_NOTHING].sort())
      .toEqual(changing.map((route) => `${route.method} ${route.path}`).sort());
  });

  it("names the worker as the actor of its agent's changes", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["write:memory", "create:tasks"]);
    const entry = { scope: run.sessionKey, key: "k", value: "v" };
    const saved = await app.send("PUT /api/memory/entry", entry, run.headers);
    expect(saved.status).toBe(200);
    expect(await app.db.first("select actor from journal where kind = 'memory.saved'")).toEqual({
      actor: `worker:${run.workerId}`,
    });
  });

  it("has no entries of unauthenticated callers", async () => {
    await using app = await openApp();
    const before = await app.db.first("select count(*) as rows from journal");
    for (let i = 0; i < 5; i++) await app.send("POST /api/auth/logout", { refresh_token: `x${i}` });
    expect(await app.db.first("select count(*) as rows from journal")).toEqual(before);
  });
});

/** Finds the declared route of a request, such as `PUT /api/workers/:id`. */
function findRoute(request: string): string {
  const [endpoint = ""] = request.split("?");
  const declared = ROUTES.map(({ method, path }) => `${method} ${path}`);
  // A path without parameters comes first: `claim` is no id of a runner.
  declared.sort((one, other) => one.split(":").length - other.split(":").length);
  return declared.find((route) => new RegExp(`^${route.replace(/:\w+/g, "[^/]+")}$`).test(endpoint)) ?? "";
}
