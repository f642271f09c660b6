import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { getRule } from "../../../src/domain/call/access.ts";
import { isClosedToRuns } from "../../../src/domain/call/scope.ts";
import { EXECUTION_STATUSES, isEndedExecution } from "../../../src/domain/call/vocabulary.ts";
import { ROUTES } from "../../../src/http/app.ts";
import type { AnyRoute } from "../../../src/http/route.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { runToken, startRun } from "../../harness/service/run.ts";
import { buildForm, fetchAs } from "../requests.ts";
import { waitUntil } from "../../harness/wait.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";
const guarded = (ROUTES as readonly AnyRoute[]).filter((route) => route.access !== "public");
// access.test.ts tests the routes that are only for people.
const forRuns = guarded.filter((route) => {
  const { access, only } = getRule(route.method, route.path);
  return access !== "token" && only === undefined && !isClosedToRuns(access);
});

/** Scopes to call a route with, and whether they are enough. */
function tries(access: string): [scopes: string[], enough: boolean][] {
  const [verb = "", resource = ""] = access.split(":");
  const otherVerb = verb === "read" ? "write" : "read";
  const otherResource = resource === "workers" ? "memory" : "workers";
  return [
    [["nothing:at-all"], false],
    [[access], true],
    [[`${otherVerb}:${resource}`], false],
    [[`${verb}:${otherResource}`], false],
    [[`${otherVerb}:*`, `*:${otherResource}`], false],
    [[`*:${resource}`], true],
    // `read:*` of a run excludes newer resources (contract 9).
    [[`${verb}:*`], access !== "read:engines" && access !== "read:budgets"],
  ];
}

describe("Idempotency-Key of runs (contract 1)", () => {
  it("belongs to one conversation of a worker", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["write:tasks"]);
    const other = await startRun(app, ["write:tasks"], "Other");
    // The same worker in another conversation.
    await app.db.write([{
      sql: "update execution set worker_id = ? where id = ?",
      args: [run.workerId, other.executionId],
    }]);
    const execution = { id: other.executionId, worker_id: run.workerId, attempt: 1 };
    const token = await runToken(app, execution, ["write:tasks"]);
    const make = async (messageId: string, headers: Record<string, string>) => {
      const body = { message_id: messageId, worker_id: run.workerId, instruction: "x", type: "immediate" };
      return (await app.send("POST /api/tasks", body, { ...headers, "idempotency-key": "k" })).status;
    };
    expect(await make(run.messageId, run.headers)).toBe(201);
    expect(await make(other.messageId, { authorization: `Bearer ${token}` })).toBe(201);
  });
});

describe("scopes of run tokens (contract 2) [SCP-1]", () => {
  it(`each of ${forRuns.length} routes requires exactly its scope [SCP-1]`, async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["read:workers"]);
    const requests = forRuns.flatMap((route) =>
      tries(String(route.access)).map(([scopes, enough]) => ({ route, scopes, enough }))
    );
    const bySet = Map.groupBy(requests, ({ scopes }) => scopes.join(" "));
    for (const [scopes, group] of bySet) {
      // Every request reads the scopes, so a change is effective immediately.
      await app.call(`PUT /api/workers/${run.workerId}`, { scopes: scopes.split(" ") });
      for (const { route, enough } of group) {
        const path = route.path.replace(/:\w+/g, UNKNOWN);
        const reply = await fetchAs(app, `${route.method} ${path}`, {
          headers: { ...run.headers, accept: "application/json", "content-type": "application/json" },
          ...(route.method === "GET" || route.method === "DELETE" ? {} : { body: '{"nothing": 1}' }),
        });
        const body = reply.headers.get("content-type")?.includes("json") ? await reply.json() : null;
        if (body === null) await reply.body?.cancel();
        const what = `${route.method} ${route.path} with ${scopes}`;
        if (enough) expect([what, body?.required_scope]).toEqual([what, undefined]);
        else expect([what, reply.status, body?.required_scope]).toEqual([what, 403, route.access]);
      }
    }
  });

  it("an agent never changes a worker's rights and never grants rights that it lacks [SCP-3, SCP-4]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["read:*", "write:workers"]);
    await app.call("POST /api/departments", { name: "Labs" });
    const other = await app.call("POST /api/workers", { name: "Other" });
    const fields = {
      scopes: ["*:*"],
      engine: "echo",
      engine_args: { echo: "x" },
      constraints: "none",
      departments: ["Labs"],
      repo: { path: "/srv/project.git" },
      skills: [{ url: "https://forge.example.org/x.git", ref: "0".repeat(40) }],
    };
    for (const id of [run.workerId, other.id]) {
      for (const [name, value] of Object.entries(fields)) {
        const reply = await app.send(`PUT /api/workers/${id}`, { [name]: value }, run.headers);
        expect([name, reply.status, reply.body.code]).toEqual([name, 403, "forbidden"]);
      }
      expect((await app.send(`PUT /api/workers/${id}`, { work_dir: "/tmp/x" }, run.headers)).status).toBe(
        400,
      );
    }
    for (const more of [...Object.entries(fields), ["work_dir", "/tmp/x"] as const]) {
      const reply = await app.send("POST /api/workers", { name: "x", [more[0]]: more[1] }, run.headers);
      expect([more[0], reply.status]).toEqual([more[0], 403]);
    }
    // The default scopes exceed those of this token.
    const plain = await app.send("POST /api/workers", { name: "x" }, run.headers);
    expect([plain.status, plain.body.required_scope]).toEqual([403, "write:memory"]);
    expect((await app.send(`PUT /api/workers/${other.id}`, { description: "ok" }, run.headers)).status).toBe(
      200,
    );
  });

  it("objects of another conversation are not found [SCP-2]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const own = await startRun(app, [
      "read:*",
      "write:tasks",
      "write:executions",
      "write:sessions",
      "write:chat",
      "write:messages",
      "write:memory",
    ]);
    const other = await startRun(app, [], "Other");
    const plan = { message_id: other.messageId, worker_id: other.workerId, instruction: "x" };
    await app.call("POST /api/tasks", { ...plan, type: "scheduled", cron: "0 12 * * *" });
    const question = await app.call("POST /api/questions", { message_id: other.messageId, text: "Really?" });
    const foreign = [
      `GET /api/questions/${question.id}`,
      `GET /api/questions/${question.id}/wait?timeout_ms=1`,
      `GET /api/tasks/${other.taskId}`,
      `GET /api/tasks/${other.taskId}/wait?timeout_ms=1`,
      `POST /api/tasks/${other.taskId}/cancel`,
      `POST /api/tasks/${other.taskId}/run`,
      `POST /api/tasks/${other.taskId}/retry`,
      `GET /api/executions/${other.executionId}`,
      `GET /api/executions/${other.executionId}/logs`,
      `GET /api/executions/${other.executionId}/diff`,
      `POST /api/executions/${other.executionId}/cancel`,
      `POST /api/executions/${other.executionId}/retry`,
      `GET /api/local/sessions/${other.sessionId}`,
      `DELETE /api/local/sessions/${other.sessionId}`,
      `GET /api/local/sessions/${other.sessionId}/messages`,
      `GET /api/local/sessions/${other.sessionId}/stream`,
      `GET /api/contexts?session_key=${other.sessionKey}`,
      `DELETE /api/contexts?session_key=${other.sessionKey}`,
      `DELETE /api/contexts/${other.workerId}?session_key=${other.sessionKey}`,
      `GET /api/messages/${other.messageId}/trace`,
      `GET /api/memory?scope=${other.sessionKey}`,
      `GET /api/memory/entry?scope=${other.sessionKey}&key=k`,
      `DELETE /api/memory/entry?scope=${other.sessionKey}&key=k`,
      `GET /api/local/sessions/${other.sessionId}/media/x`,
      `GET /api/events?session_key=${other.sessionKey}`,
    ];
    for (const route of foreign) {
      const reply = await app.send(route, route.startsWith("POST") ? {} : undefined, own.headers);
      expect([route, reply.status, reply.body.code]).toEqual([route, 404, "not_found"]);
    }
    const { messageId: message_id, sessionKey: scope } = other;
    const rename = `PUT /api/local/sessions/${other.sessionId}`;
    const renamed = await app.send(rename, { name: "mine" }, own.headers);
    expect([renamed.status, renamed.body.code]).toEqual([403, "forbidden"]);
    const writes: [route: string, body: object][] = [
      [`PUT /api/tasks/${other.taskId}`, { name: "mine" }],
      [`POST /api/local/sessions/${other.sessionId}/messages`, { content: "do it for me" }],
      ["POST /api/messages", { message_id, content: "from somebody else" }],
      ["POST /api/tasks", { message_id, worker_id: own.workerId, instruction: "x", type: "immediate" }],
      ["POST /api/tasks/batch", {
        tasks: [{ message_id, worker_id: own.workerId, instruction: "x", type: "immediate" }],
      }],
      ["PUT /api/memory/entry", { scope, key: "k", value: "v" }],
    ];
    for (const [route, body] of writes) {
      const reply = await app.send(route, body, own.headers);
      expect([route, reply.status, reply.body.code]).toEqual([route, 404, "not_found"]);
    }
    const upload = `POST /api/local/sessions/${other.sessionId}/media`;
    const sent = await fetchAs(app, upload, { headers: own.headers, body: buildForm({}, "x") });
    expect(sent.status).toBe(404);
    // Every route with an id is in one of these lists, or names public objects.
    const shared = /^\/api\/(workers\/:id(\/status)?|departments\/:id_or_name|engines\/:name|budgets\/:id)$/;
    const tried = [...foreign, ...writes.map(([route]) => route), rename, upload];
    const untried = forRuns.filter((route) => route.path.includes(":") && !shared.test(route.path)).filter(
      (route) => {
        const pattern = new RegExp(`^${route.method} ${route.path.replace(/:\w+/g, "[^/?]+")}(\\?|$)`);
        return !tried.some((one) => pattern.test(one));
      },
    );
    expect(untried.map((route) => `${route.method} ${route.path}`)).toEqual([
      "GET /api/workers/:id/executions",
      "GET /api/sessions/:sessionId/executions",
    ]);
    const lists = [
      "GET /api/executions",
      `GET /api/tasks?worker_id=${other.workerId}`,
      "GET /api/queue",
      `GET /api/workers/${other.workerId}/executions`,
      `GET /api/sessions/${other.sessionId}/executions`,
      "GET /api/messages/inbound",
      "GET /api/messages/outbound",
      "GET /api/local/sessions",
      "GET /api/conversations",
      "GET /api/schedules",
    ];
    for (const route of lists) {
      const reply = await app.send(route, undefined, own.headers);
      expect([route, reply.status]).toEqual([route, 200]);
      expect([route, JSON.stringify(reply.body)]).not.toEqual([
        route,
        expect.stringContaining(other.sessionId),
      ]);
      expect(JSON.stringify(reply.body)).not.toContain(other.messageId);
    }
    const events = await app.send("GET /api/events?page_size=100", undefined, {
      ...own.headers,
      accept: "application/json",
    });
    const keys = events.body.map(({ session_key }: { session_key: string }) => session_key);
    expect(new Set(keys)).toEqual(new Set([own.sessionKey]));
    for (const route of ["GET /api/queue", "GET /api/conversations", "GET /api/messages/inbound"]) {
      const { body } = await app.send(route, undefined, own.headers);
      expect([route, body.length, body[0].session_key]).toEqual([route, 1, own.sessionKey]);
    }
    expect((await app.send(`GET /api/messages/${own.messageId}/trace`, undefined, own.headers)).status).toBe(
      200,
    );
  });

  it("a token is invalid within a second after its run or attempt ends, in every way [SCP-5, SCP-6]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const status = async (headers: Record<string, string>) =>
      (await app.send("GET /api/workers", undefined, headers)).status;
    const run = await startRun(app);
    expect(await status(run.headers)).toBe(200);
    await app.call(`POST /api/executions/${run.executionId}/cancel`);
    expect(await status(run.headers)).toBe(401);

    const file = join(app.dataDir, "token");
    const { worker_id, id } = await app.call("POST /api/local/sessions", { worker_id: run.workerId });
    expect(worker_id).toBe(run.workerId);
    await app.call(`POST /api/local/sessions/${id}/messages`, { content: `show-token-and-leave ${file}` });
    const own = { authorization: "" };
    await waitUntil("the agent has shown its token", async () => {
      own.authorization = `Bearer ${(await Deno.readTextFile(file).catch(() => "")).trim()}`;
      return own.authorization.length > 20;
    });
    expect(await status(own)).toBe(200);
    await app.until("execution.completed");
    expect(await status(own)).toBe(401);
  });

  it("a token is valid only while its run is active [SCP-5]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app);
    const seen: Record<string, number> = {};
    for (const status of EXECUTION_STATUSES) {
      const sql = "update execution set status = ?, completed_at = ? where id = ?";
      await app.db.write([{
        sql,
        args: [status, isEndedExecution(status) ? Date.now() : null, run.executionId],
      }]);
      seen[status] = (await app.send("GET /api/workers", undefined, run.headers)).status;
    }
    const sql = "update execution set status = 'running', completed_at = null";
    await app.db.write([{ sql, args: [] }]);
    expect(seen).toEqual({ pending: 200, running: 200, completed: 401, failed: 401 });
    await app.call(`POST /api/executions/${run.executionId}/cancel`);
  });
});
