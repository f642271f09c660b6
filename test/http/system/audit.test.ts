import { digest } from "../../../src/base/bytes.ts";
import { insertPairing } from "../../../src/store/chat/platform.ts";
import { storeSetting } from "../../../src/store/db/setting.ts";
import { describe, expect, it } from "vitest";
import { ROUTES } from "../../../src/http/app.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { startRun } from "../../harness/service/run.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

const TASK = { message_id: "m", instruction: "sleep 60" };

/** Inserts a failed message. */
async function insertFailedMessage(app: App): Promise<string> {
  await app.db.write([{ sql: "update outbound_message set status = 'failed', due_at = null", args: [] }]);
  const [message] = await app.call("GET /api/messages/outbound");
  return message.id;
}

/** Every changing route with the event that it must write, listed by hand, and a request. */
const MUTATIONS: Record<string, (app: App, world: Json) => Promise<unknown>> = {
  "POST /api/auth/login -> auth.login": async (app, world) =>
    world.login = await app.call("POST /api/auth/login", {
      username: "admin",
      password: app.server.generatedPassword,
    }),
  "POST /api/auth/logout -> auth.logout": (app, { login }) =>
    app.send("POST /api/auth/logout", { refresh_token: login.refresh_token }),
  "POST /api/system/rotate-key -> system.key_rotated": (app) => app.call("POST /api/system/rotate-key", {}),
  "POST /api/departments -> department.created": async (app, world) =>
    world.lab = await app.call("POST /api/departments", { name: "Lab" }),
  "PUT /api/departments/:id_or_name -> department.updated": (app) =>
    app.call("PUT /api/departments/Lab", { sort_order: 2 }),
  "POST /api/workers -> worker.created": async (app, world) =>
    world.worker = await app.call("POST /api/workers", { name: "Ada" }),
  "PUT /api/workers/:id -> worker.updated": (app, { worker }) =>
    app.call(`PUT /api/workers/${worker.id}`, { description: "first" }),
  "PUT /api/memory/entry -> memory.saved": (app) =>
    app.call("PUT /api/memory/entry", { scope: "global", key: "k", value: "v" }),
  "DELETE /api/memory/entry -> memory.deleted": (app) =>
    app.call("DELETE /api/memory/entry?scope=global&key=k"),
  "POST /api/local/sessions -> chat.created": async (app, world) =>
    world.chat = await app.call("POST /api/local/sessions", { worker_id: world.worker.id }),
  "PUT /api/local/sessions/:id -> chat.updated": (app, { chat }) =>
    app.call(`PUT /api/local/sessions/${chat.id}`, { name: "x" }),
  "POST /api/local/sessions/:id/messages -> message.received": async (app, world) => {
    world.sent = await app.call(`POST /api/local/sessions/${world.chat.id}/messages`, {
      content: "say hi",
    });
    await app.settle();
  },
  "POST /api/local/sessions/:id/media -> upload.stored": async (app, { chat }) => {
    const form = new FormData();
    form.set("file", new File(["x"], "x.txt"));
    return await fetch(`${app.url}/api/local/sessions/${chat.id}/media`, {
      method: "POST",
      headers: { authorization: `Bearer ${await app.token()}` },
      body: form,
    });
  },
  "POST /api/messages -> message.sent": (app, { sent }) =>
    app.call("POST /api/messages", { message_id: sent.message_id, content: "hello" }),
  "POST /api/messages/:id/resend -> message.resent": async (app) =>
    app.call(`POST /api/messages/${await insertFailedMessage(app)}/resend`, {}),
  "POST /api/messages/resend -> message.resent": async (app) => {
    await insertFailedMessage(app);
    await app.call("POST /api/messages/resend", { platform: "local" });
  },
  "POST /api/tasks -> task.created": async (app, world) => {
    const schedule = { ...TASK, worker_id: world.worker.id, type: "scheduled", cron: "0 0 1 1 *" };
    world.task = await app.call("POST /api/tasks", schedule);
  },
  "POST /api/tasks/batch -> task.created": (app, { worker }) => {
    const schedule = { ...TASK, worker_id: worker.id, type: "scheduled", cron: "0 0 1 1 *" };
    return app.call("POST /api/tasks/batch", { tasks: [schedule, schedule] });
  },
  "PUT /api/tasks/:id -> task.updated": (app, { task }) =>
    app.call(`PUT /api/tasks/${task.id}`, { name: "x" }),
  "POST /api/tasks/:id/run -> task.due": (app, { task }) => app.call(`POST /api/tasks/${task.id}/run`, {}),
  "POST /api/tasks/:id/cancel -> task.cancelled": (app, { task }) =>
    app.call(`POST /api/tasks/${task.id}/cancel`, {}),
  "POST /api/executions/:id/cancel -> execution.cancelling": async (app) => {
    const { executionId } = await startRun(app);
    await app.call(`POST /api/executions/${executionId}/cancel`, {});
  },
  "DELETE /api/contexts/:worker_id -> context.cleared": (app, { worker, chat }) =>
    app.call(`DELETE /api/contexts/${worker.id}?session_key=local:${chat.id}`),
  "DELETE /api/contexts -> session.cleared": (app, { chat }) =>
    app.call(`DELETE /api/contexts?session_key=local:${chat.id}`),
  "DELETE /api/local/sessions/:id -> chat.deleted": (app, { chat }) =>
    app.call(`DELETE /api/local/sessions/${chat.id}`),
  "DELETE /api/workers/:id -> worker.deleted": (app, { worker }) =>
    app.call(`DELETE /api/workers/${worker.id}`),
  "DELETE /api/departments/:id_or_name -> department.deleted": (app) =>
    app.call("DELETE /api/departments/Lab"),
  "POST /api/executions/:id/retry -> task.created": async (app) => {
    const { executionId } = await startRun(app, [], "Retried");
    await app.call(`POST /api/executions/${executionId}/cancel`, {});
    await app.call(`POST /api/executions/${executionId}/retry`, {});
  },
  "POST /api/fleet/apply -> fleet.applied": (app) =>
    app.call("POST /api/fleet/apply", { fleet: { memory: { tone: "friendly" } } }),
  "POST /api/queue/cancel -> task.cancelled": async (app) => {
    const { id } = await app.call("POST /api/workers", { name: "Paused", paused: true });
    await app.call("POST /api/tasks", { ...TASK, worker_id: id, type: "immediate" });
    await app.call("POST /api/queue/cancel", { filter: { worker_id: id }, expected: 1 });
  },
  "POST /api/budgets -> budget.created": async (app, world) =>
    world.budget = await app.call("POST /api/budgets", {
      name: "Day",
      unit: "runs",
      limit: 1_000,
      period: "24h",
    }),
  "PUT /api/budgets/:id -> budget.updated": (app, { budget }) =>
    app.call(`PUT /api/budgets/${budget.id}`, { limit: 2_000 }),
  "POST /api/budgets/:id/lift -> budget.lifted": (app, { budget }) =>
    app.call(`POST /api/budgets/${budget.id}/lift`, { for_ms: 1_000 }),
  "DELETE /api/budgets/:id -> budget.deleted": (app, { budget }) =>
    app.call(`DELETE /api/budgets/${budget.id}`),
  "POST /api/runners -> runner.created": (app) =>
    app.call("POST /api/runners", { name: "mac1", labels: ["gpu"] }),
  "POST /api/runners/:id_or_name/drain -> runner.updated": (app) =>
    app.call("POST /api/runners/mac1/drain", {}),
  "POST /api/workers/:id/rehome -> worker.updated": async (app) => {
    const away = await app.call("POST /api/workers", { name: "Away", runs_on: ["gpu"] });
    await app.call(`POST /api/workers/${away.id}/rehome`, { home: "mac1" });
  },
  "DELETE /api/runners/:id_or_name -> runner.deleted": (app) => app.call("DELETE /api/runners/mac1"),
  "POST /api/engines/:name/lift -> engine.lifted": (app) => app.call("POST /api/engines/echo/lift"),
  "POST /api/users -> user.created": (app) =>
    app.call("POST /api/users", { name: "Eve", role: "viewer", password: "a long enough word" }),
  "PUT /api/users/:id_or_name -> user.updated": (app) => app.call("PUT /api/users/Eve", { role: "operator" }),
  "PUT /api/users/:id_or_name/password -> user.password_changed": (app) =>
    app.call("PUT /api/users/Eve/password", { password: "another long word" }),
  "DELETE /api/users/:id_or_name -> user.deleted": (app) => app.call("DELETE /api/users/Eve"),
  "POST /api/tokens -> token.created": async (app, world) =>
    world.token = await app.call("POST /api/tokens", { name: "ci", scopes: ["read:*"] }),
  "DELETE /api/tokens/:id -> token.deleted": (app, { token }) => app.call(`DELETE /api/tokens/${token.id}`),
  "POST /api/questions -> question.opened": async (app, world) => {
    world.question = await app.call("POST /api/questions", { message_id: "m", text: "Which?" });
  },
  "POST /api/questions/:id/answer -> question.answered": (app, { question }) =>
    app.call(`POST /api/questions/${question.id}/answer`, { answer: "This" }),
  "POST /api/questions/:id/cancel -> question.cancelled": async (app) => {
    const { id } = await app.call("POST /api/questions", { message_id: "m", text: "Which?" });
    return await app.call(`POST /api/questions/${id}/cancel`, {});
  },
  "POST /api/webhooks -> webhook.created": (app) =>
    app.call("POST /api/webhooks", { name: "w", url: "https://127.0.0.1:1/", events: ["task.*"] }),
  "PUT /api/webhooks/:id_or_name -> webhook.updated": (app) =>
    app.call("PUT /api/webhooks/w", { enabled: false }),
  "POST /api/webhooks/:id_or_name/test -> webhook.tested": (app) => app.call("POST /api/webhooks/w/test"),
  "POST /api/webhooks/:id_or_name/replay -> webhook.replayed": (app) =>
    app.call("POST /api/webhooks/w/replay", { after: 0 }),
  "DELETE /api/webhooks/:id_or_name -> webhook.deleted": (app) => app.call("DELETE /api/webhooks/w"),
  "POST /hooks/:name -> message.received": (app) => app.call("POST /hooks/alerts", { id: 1, text: "hello" }),
  "POST /api/platforms/pair -> platform.paired": async (app) => {
    const row = { platform: "alerts", sender: "s", name: "Eve", code_hash: digest("ABCD2345") };
    await app.db.write(insertPairing({ ...row, created_at: Date.now(), expires_at: Date.now() + 60_000 }));
    await app.call("POST /api/platforms/pair", { code: "abcd-2345", sender: "s" });
  },
  "DELETE /api/platforms/:name/senders/:sender -> platform.revoked": (app) =>
    app.call("DELETE /api/platforms/alerts/senders/s"),
  "POST /api/platforms/:name/test -> platform.tested": (app) =>
    app.call("POST /api/platforms/alerts/test", {}),
  "POST /api/system/backup -> system.backup": (app) => app.send("POST /api/system/backup", {}),
  "POST /api/system/resume -> system.resumed": async (app) => {
    await app.db.write([storeSetting("schedules_paused", "1")]);
    return await app.call("POST /api/system/resume");
  },
  "PUT /api/system/password -> auth.password_changed": (app) =>
    app.send("PUT /api/system/password", {
      current_password: app.server.generatedPassword,
      new_password: "another-password-9",
    }),
};

// Access tokens and codes are not stored. The journal records their login.
const CHANGES_NOTHING = [
  "POST /api/fleet/plan",
  "POST /api/messages/explain",
  "POST /api/auth/refresh",
  "POST /api/auth/console",
  // Reports of a runner are events of the run.
  "POST /api/runners/claim",
  "POST /api/runners/beat",
  "POST /api/runs/:id/log",
  "POST /api/runs/:id/events",
  "POST /api/runs/:id/end",
];

describe("the audit trail (contract 4, Journal)", () => {
  it("names the actor and the address of every change", async () => {
    const platforms = { alerts: { kind: "webhook" as const, worker: "Ada" } };
    await using app = await openApp({
      config: { engines: buildFakeEngines(), auth: { password_hash: "" }, platforms },
    });
    const world = {};
    const missing: string[] = [];
    for (const [name, send] of Object.entries(MUTATIONS)) {
      const [, kind = ""] = name.split(" -> ");
      const before = await app.db.first<{ seq: number }>("select coalesce(max(seq), 0) as seq from journal");
      await send(app, world);
      const rows = await app.db.read(
        "select actor from journal where seq > ? and kind = ? and actor = 'user:admin' and address = '127.0.0.1'",
        [before?.seq ?? 0, kind],
      );
      if (rows.length === 0) missing.push(name);
    }
    expect(missing).toEqual([]);
    const changing = ROUTES.filter((route) => route.method !== "GET").map((route) =>
      `${route.method} ${route.path}`
    );
    expect([...Object.keys(MUTATIONS).map((name) => name.split(" -> ")[0]), ...CHANGES_NOTHING].sort())
      .toEqual(changing.sort());
  }, 180_000);

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
