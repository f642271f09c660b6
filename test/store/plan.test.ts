import { describe, expect, it, vi } from "vitest";
import { createId } from "../../src/base/id.ts";
import { listConversationEvents } from "../../src/store/chat/chat.ts";
import { Database, type Statement, type Value } from "../../src/store/db/database.ts";
import { readHistoryPage } from "../../src/store/chat/history.ts";
import { type ExecutionEnd, finishExecution } from "../../src/store/work/execution.ts";
import { endLease, findRemoteRun } from "../../src/store/workers/remote_run.ts";
import { listLastReceivedRows } from "../../src/store/chat/platform_message.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { listOldExecutions, pruneInbound, pruneSentReplies } from "../../src/store/db/retention.ts";
import { findAskerContext } from "../../src/store/chat/conversation_context.ts";
import { listOldestNextTasks } from "../../src/store/work/task_queue.ts";
import { listUsageByExecution } from "../../src/store/workers/usage.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { startRun } from "../harness/service/run.ts";

// Tables that grow for months. Statements may scan workers, departments and sessions.
const GROWING = [
  "execution",
  "task",
  "inbound_message",
  "outbound_message",
  "journal",
  "occurrence",
  "upload",
  "bee_run",
  "session_context",
  "memory",
  "idempotency",
  "refresh_token",
  "question",
  "search_entry",
  "search_term",
];

// The index contains only running gates, at most one per slot.
const RUNNING_GATES = /USING INDEX occurrence_gating$/;

async function openDatabase(): Promise<Database> {
  const db = await Database.open(":memory:");
  await migrate(db, 0);
  return db;
}

/** Records every statement of the service with its arguments, to read its plan later. */
function recordStatements(app: App): Map<string, Value[]> {
  const seen = new Map<string, Value[]>();
  const { db } = app;
  const read = db.read.bind(db);
  const first = db.first.bind(db);
  const write = db.write.bind(db);
  db.read = (sql, args = []) => {
    seen.set(sql, args);
    return read(sql, args);
  };
  db.first = (sql, args = []) => {
    seen.set(sql, args);
    return first(sql, args);
  };
  db.write = (statements: Statement[]) => {
    for (const { sql, args } of statements) seen.set(sql, args);
    return write(statements);
  };
  return seen;
}

async function callEverything(app: App): Promise<void> {
  const run = await startRun(app, ["*:*"]);
  const key = encodeURIComponent(run.sessionKey);
  const lists = [
    `/api/executions?worker_id=${run.workerId}&status=running,failed`,
    "/api/executions?started_from=1&started_to=2",
    "/api/executions?completed_from=1&status=failed",
    "/api/executions?text=a&engine=echo&failure=timeout",
    `/api/executions?worker_id=${run.workerId}&text=a`,
    `/api/tasks?worker_id=${run.workerId}&text=a`,
    "/api/queue?text=a",
    "/api/queue?status=failed,cancelled",
    "/api/queue?status=pending,completed",
    "/api/schedules?text=a",
    "/api/messages/inbound?text=a",
    "/api/messages/outbound?text=a",
    "/api/executions?page=3&page_size=2",
    `/api/executions?cursor=${run.executionId}`,
    `/api/executions?session_id=${run.sessionId}`,
    `/api/executions?session_id=a,b`,
    `/api/sessions/${key}/executions`,
    `/api/workers/${run.workerId}/executions`,
    `/api/tasks?session_key=${key}&status=running&type=immediate`,
    `/api/tasks?message_id=${run.messageId}`,
    `/api/tasks?worker_id=${run.workerId}&status=pending,running`,
    "/api/queue",
    "/api/inbox",
    "/api/conversations",
    "/api/schedules",
    "/api/schedules?status=scheduled&paused=false&failing=true",
    "/api/schedules?page_size=1&page=2",
    `/api/schedules?worker_id=${run.workerId}&cursor=${run.taskId}`,
    "/api/conversations?platform=local",
    "/api/search?q=invoice",
    `/api/search?q=ab&session_key=${key}&in=messages&since=1`,
    `/api/conversations?session_key=${key}`,
    "/api/inbox?since=1",
    "/api/executions?text=report",
    "/api/executions?engine=echo&text=report",
    "/api/workers?engine=echo&text=ada",
    "/api/messages/inbound?text=hello",
    "/api/messages/outbound?text=hello",
    `/api/queue?worker_id=${run.workerId}&status=pending&cursor=${run.taskId}`,
    `/api/queue?session_key=${key}&type=immediate`,
    ...["worker", "department", "engine", "day", "conversation"].map((by) =>
      `/api/usage?by=${by}&since=${Date.now() - 1_000}`
    ),
    "/api/system/series",
    "/api/usage/workers",
    "/api/system/doctor",
    "/metrics",
    `/api/messages/inbound?session_key=${key}&status=failed`,
    "/api/messages/inbound?platform=local",
    "/api/messages/inbound?status=received",
    "/api/messages/inbound?received_from=1&received_to=2",
    `/api/messages/outbound?session_key=${key}`,
    "/api/messages/outbound?source_type=worker&source_id=x",
    "/api/messages/outbound?platform=local&status=sent",
    "/api/messages/outbound?sent_from=1",
    `/api/messages/${run.messageId}/trace`,
    "/api/memory?scope=global",
    `/api/contexts?session_key=${key}`,
    `/api/workers?name=a`,
    `/api/workers/${run.workerId}/status`,
    "/api/departments",
    "/api/local/sessions",
    `/api/local/sessions/${run.sessionId}/messages?limit=5`,
    `/api/local/sessions/${run.sessionId}/messages?before=${run.messageId}`,
    "/v1/models",
  ];
  for (const path of lists) await app.call(`GET ${path}`);
  for (
    const query of [
      "after=0",
      `session_key=${key}`,
      `worker_id=${run.workerId}`,
      `task_id=${run.taskId}`,
      "kind=task.created",
    ]
  ) {
    await app.call(`GET /api/events?${query}`, undefined, { accept: "application/json" });
  }
  await listLastReceivedRows(app.db, "phone", 50);
  await listOldestNextTasks(app.db, Date.now(), 50);
  await listConversationEvents(app.db, run.sessionKey, 0, { events: 100, contentBytes: 1_000 });
  await app.call("PUT /api/memory/entry", { scope: "global", key: "k", value: "v" });
  await app.call("POST /api/messages", { message_id: run.messageId, content: "more" }, {
    "idempotency-key": "k",
  });
  await app.call("GET /api/messages/outbound?ref=abcdef");
  await app.db.write([{
    sql: "update outbound_message set status = 'failed', due_at = null where message_id = ?",
    args: [run.messageId],
  }]);
  await app.call("POST /api/messages/resend", { platform: "local", since: 1 });
  const schedule = {
    message_id: "m",
    worker_id: run.workerId,
    instruction: "x",
    type: "scheduled",
    cron: "* * * * *",
  };
  const { id } = await app.call("POST /api/tasks", schedule);
  await app.call(`PUT /api/tasks/${id}`, { name: "x", cron: "0 1 * * *", paused: true });
  await app.call(`PUT /api/tasks/${id}`, { paused: false });
  await app.call(`POST /api/tasks/${id}/run`);
  await app.call(`POST /api/executions/${run.executionId}/cancel`);
  const completion = { model: run.workerId, messages: [{ role: "user", content: "say hello" }] };
  await app.call("POST /v1/chat/completions", completion, { "x-stainless-retry-count": "1" });
  await app.call(`DELETE /api/contexts?session_key=${key}`);
  await app.call(`DELETE /api/local/sessions/${run.sessionId}`);
  await app.call(`DELETE /api/workers/${run.workerId}`);
  await app.settle();
}

describe("query plans (architecture, Style)", () => {
  it("no statement scans a growing table", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const seen = recordStatements(app);
    await callEverything(app);
    expect(seen.size).toBeGreaterThan(80);
    const scans: string[] = [];
    // Plans depend on the schema only, so an empty database is enough.
    const empty = await openDatabase();
    for (const [sql, args] of [...seen]) {
      const plan = await empty.read<{ detail: string }>(`explain query plan ${sql}`, args);
      for (const { detail } of plan) {
        const table = /^SCAN (\w+)/.exec(detail)?.[1];
        if (table === undefined || !GROWING.includes(table)) continue;
        // A page or a bounded count may follow an index from its end.
        const bounded = /USING (COVERING )?INDEX/.test(detail) && /\blimit\b/.test(sql);
        if (!bounded && !RUNNING_GATES.test(detail)) scans.push(`${detail}: ${sql.replace(/\s+/g, " ")}`);
      }
    }
    await empty.close();
    expect(scans).toEqual([]);
    // An explained write stays open until its statement is freed, and would disturb the next commit.
    app.busyExpected = 1;
  });

  it("list() reads a page near the end from the end, by ids", async () => {
    await using app = await openApp();
    const seen = recordStatements(app);
    await app.db.write([{
      sql: "update counter set value = 1000000 where name in ('execution', 'message')",
      args: [],
    }]);
    for (const list of ["executions", "messages/inbound"]) {
      await app.call(`GET /api/${list}?page=19608&page_size=51`);
    }
    const fromEnd = [...seen].filter(([sql]) => sql.includes("as page_id"));
    expect(fromEnd.length).toBeGreaterThan(0);
    for (const [sql, args] of fromEnd) {
      const plan = await app.db.read<{ detail: string }>(`explain query plan ${sql}`, args);
      const searches = plan.filter(({ detail }) => /^SEARCH (execution|inbound_message) /.test(detail));
      expect(searches.map(({ detail }) => detail.replace(/.* \(/, "(")), sql).toEqual(["(id=?)"]);
    }
  });

  it("readHistoryPage() uses the indexes of its conversation", async () => {
    await using db = await openDatabase();
    const used: string[] = [];
    const read = db.read.bind(db);
    db.read = async (sql, args) => {
      const plan = await read<{ detail: string }>(`explain query plan ${sql}`, args);
      used.push(...plan.flatMap(({ detail }) => /USING (?:COVERING )?INDEX (\w+)/.exec(detail)?.[1] ?? []));
      return [];
    };
    db.first = async (sql, args) => (await db.read(sql, args), null);
    await readHistoryPage(db, "local:x", { limit: 20 });
    await readHistoryPage(db, "local:x", { limit: 20, before: createId() });
    const own = ["inbound_session", "outbound_history"];
    const byId = ["sqlite_autoindex_inbound_message_1", "sqlite_autoindex_outbound_message_1"];
    expect([...new Set(used)].sort()).toEqual([...own, ...byId].sort());
  });

  it("statements with ids find their runs without the indexes by status, worker or runner", async () => {
    await using db = await openDatabase();
    const found = vi.spyOn(db, "first").mockResolvedValue(null);
    await findRemoteRun(db, "r", "e");
    await findAskerContext(db, "t", "claude");
    const reads = found.mock.calls.map(([sql, args = []]) => ({ sql, args }));
    found.mockRestore();
    const end = { usage: {} } as ExecutionEnd;
    for (const statement of [...reads, ...endLease("e", 1), ...finishExecution("e", end, 1)]) {
      const plan = await db.read<{ detail: string }>(`explain query plan ${statement.sql}`, statement.args);
      const indexes = plan.flatMap(({ detail }) =>
        /INDEX (execution_status|execution_worker|remote_run_request)/.exec(detail) ?? []
      );
      expect(indexes, statement.sql).toEqual([]);
    }
  });

  it("retention finds old rows by time, without reading the status column, which comes after long texts", async () => {
    await using db = await openDatabase();
    const explain = async (sql: string, args: Value[]) => {
      const plan = await db.read<{ detail: string }>(`explain query plan ${sql}`, args);
      return plan.map(({ detail }) => detail).join("; ");
    };
    const deleted = [pruneInbound(0), pruneSentReplies(0)];
    expect(await explain(deleted[0]?.sql ?? "", deleted[0]?.args ?? [])).toContain("INDEX inbound_received");
    expect(await explain(deleted[1]?.sql ?? "", deleted[1]?.args ?? [])).toContain("INDEX outbound_sent");
    const asked = vi.spyOn(db, "read");
    await listOldExecutions(db, 0);
    const [sql = "", args = []] = asked.mock.calls[0] ?? [];
    expect(await explain(sql, args)).toContain("INDEX execution_completed");
  });

  it("listUsageByExecution() sums the use from an index alone, without the columns after the texts", async () => {
    await using db = await openDatabase();
    const asked = vi.spyOn(db, "read").mockResolvedValue([]);
    await listUsageByExecution(db, "engine", 1, null);
    await listUsageByExecution(db, "session_key", 1, null);
    await listUsageByExecution(db, "session_key", 1, "local:x");
    const statements = [...asked.mock.calls];
    asked.mockRestore();
    for (const [sql, args = []] of statements) {
      const plan = await db.read<{ detail: string }>(`explain query plan ${sql}`, args);
      expect(plan.map(({ detail }) => detail), sql).toContain(
        "SEARCH execution USING COVERING INDEX execution_completed (completed_at>?)",
      );
    }
  });
});
