import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { startRun } from "../../harness/service/run.ts";
import { fetchAs } from "../requests.ts";
import { waitUntil } from "../../harness/wait.ts";

async function connect(app: App, token: string, inQuery = false): Promise<Client> {
  const url = new URL(inQuery ? `${app.url}/mcp?token=${token}` : `${app.url}/mcp`);
  const headers: Record<string, string> = inQuery ? {} : { authorization: `Bearer ${token}` };
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

async function names(client: Client): Promise<string[]> {
  return (await client.listTools()).tools.map((tool) => tool.name).sort();
}

// deno-lint-ignore no-explicit-any
type Json = any;

async function call(
  client: Client,
  name: string,
  args: Record<string, unknown>,
): Promise<{ error: boolean; value: Json }> {
  const result = await client.callTool({ name, arguments: args });
  const [content] = result.content as { text: string }[];
  return { error: result.isError === true, value: JSON.parse(content?.text ?? "null") };
}

const JSON_RPC = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });

function post(app: App, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetchAs(app, "POST /mcp", { headers: { ...JSON_RPC, ...headers }, body });
}

describe("/mcp", () => {
  it("offers the routes as tools, with the same answers", async () => {
    await using app = await openApp();
    const client = await connect(app, await app.token());
    expect(await names(client)).toEqual(
      expect.arrayContaining(["worker_list", "task_create", "memory_save", "message_send"]),
    );
    expect((await names(client)).filter((name) => /^(chat|auth|system|event)_/.test(name))).toEqual([]);
    const made = await call(client, "worker_create", { name: "Ada", scopes: ["read:tasks"] });
    expect(made).toMatchObject({ error: false, value: { name: "Ada" } });
    const listed = await call(client, "worker_list", { name: "ada", page_size: 5 });
    expect(listed.value).toEqual([made.value]);
    expect((await call(client, "worker_get", { id: made.value.id })).value).toEqual(made.value);
    const updated = await call(client, "worker_update", { id: made.value.id, description: "new" });
    expect(updated.value.description).toBe("new");
    await client.close();
  });

  it("returns the problem document of the route as an error", async () => {
    await using app = await openApp();
    const client = await connect(app, await app.token());
    expect(await call(client, "worker_get", { id: "../workers" })).toMatchObject({
      error: true,
      value: { code: "not_found" },
    });
    expect(await call(client, "worker_get", {})).toMatchObject({ error: true, value: { code: "not_found" } });
    expect(await call(client, "worker_list", { page_size: 1000 })).toMatchObject({
      error: true,
      value: { code: "invalid_request", errors: [{ path: "page_size" }] },
    });
    await client.close();
  });

  it("shows a run the tools of its scopes, in its conversation, until it ends (contract 2)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app);
    const client = await connect(app, run.token);
    expect(await names(client)).toEqual([
      "ask",
      "department_get",
      "department_list",
      "memory_delete",
      "memory_get",
      "memory_list",
      "memory_save",
      "message_send",
      "question_get",
      "question_list",
      "question_wait",
      "queue_list",
      "recall",
      "schedule_list",
      "schedule_preview",
      "task_get",
      "task_list",
      "task_wait",
      "worker_get",
      "worker_list",
      "worker_status",
    ]);
    const said = await call(client, "message_send", { message_id: run.messageId, content: "half done" });
    expect(said).toMatchObject({ error: false, value: { source_type: "worker", source_id: run.workerId } });
    expect(await call(client, "memory_save", { scope: "global", key: "k", value: "v" })).toMatchObject({
      error: true,
      value: { code: "forbidden" },
    });
    await app.call(`POST /api/executions/${run.executionId}/cancel`);
    await expect(client.listTools()).rejects.toThrow();
    await expect(connect(app, run.token)).rejects.toThrow();
  });

  it("a waiting tool call ends when its client disconnects", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app);
    const { wakeups } = app.server.parts;
    const before = wakeups.size;
    const leaving = new AbortController();
    const params = { name: "task_wait", arguments: { id: run.taskId, timeout_ms: 60_000 } };
    const asked = fetch(`${app.url}/mcp`, {
      method: "POST",
      headers: { ...run.headers, ...JSON_RPC },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
      signal: leaving.signal,
    }).then((answer) => answer.text()).catch(() => "left");
    await waitUntil("it waits", () => wakeups.size > before);
    leaving.abort();
    expect(await asked).toBe("left");
    await waitUntil("nobody waits", () => wakeups.size === before);
  });

  it("accepts the token in the query; without a token it is 401", async () => {
    await using app = await openApp();
    const client = await connect(app, await app.token(), true);
    expect((await names(client)).length).toBeGreaterThan(20);
    await client.close();
    const response = await post(app, LIST, { authorization: "" });
    expect([response.status, (await response.json()).code]).toEqual([401, "unauthenticated"]);
  });

  it("refuses GET with 405, an unknown tool, and a body that is not JSON", async () => {
    await using app = await openApp();
    expect((await fetchAs(app, "GET /mcp", { headers: JSON_RPC })).status).toBe(405);
    expect((await post(app, "{")).status).toBe(400);
    const params = { name: "nothing", arguments: {} };
    const unknown = await post(app, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }));
    expect(await unknown.text()).toMatch(/nothing/);
  });

  it("accepts one message per request and refuses a batch", async () => {
    await using app = await openApp();
    const send = async (body: string) => {
      const response = await post(app, body);
      return [response.status, (await response.text()).includes("Cannot accept a JSON-RPC batch")];
    };
    expect(await send(LIST)).toEqual([200, false]);
    for (const batch of [`[${LIST}]`, ` \n[${LIST},${LIST}]`, `\ufeff[${LIST}]`, "[]"]) {
      expect(await send(batch)).toEqual([400, true]);
    }
  });

  it("cuts the answer of a tool at 1 MiB, never inside a character, with a hint how to continue", async () => {
    await using app = await openApp();
    const rows = Array.from({ length: 30 }, (_, at) => ({
      sql: "insert into memory (scope, key, value, updated_at) values ('global', ?, ?, 1)",
      args: [`key-${at}`, "\u{1F41D}".repeat(25_000)],
    }));
    await app.db.write(rows);
    const client = await connect(app, await app.token());
    const result = await client.callTool({
      name: "memory_list",
      arguments: { scope: "global", page_size: 100 },
    });
    const text = (result.content as { text: string }[])[0]?.text ?? "";
    const [read = "", said = ""] = text.split("\n[Cut ");
    expect(said).toMatch(/^after 1048576 bytes.* tail, .*cursor\)\.\]$/);
    const bytes = new TextEncoder().encode(read).length;
    expect(bytes > 1024 * 1024 - 4 && bytes <= 1024 * 1024).toBe(true);
    expect(read.includes("\ufffd")).toBe(false);
    await client.close();
  });
});
