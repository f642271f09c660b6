import { describe, expect, it } from "vitest";
import {
  deleteExecutions,
  listOldExecutions,
  pruneInbound,
  pruneSentReplies,
  pruneTasks,
} from "../../../src/store/db/retention.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { createToken, createUser } from "../../harness/model/people.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import type { Json } from "../../harness/service/client.ts";
import { startRun } from "../../harness/service/run.ts";
import { fetchAs } from "../requests.ts";

const config = { engines: buildFakeEngines() };

/** Finds texts, and returns the excerpts. */
async function find(app: App, query: string, headers: Record<string, string> = {}): Promise<string[]> {
  const hits = await app.call(`GET /api/search?${query}`, undefined, headers);
  return hits.map((hit: Json) => hit.excerpt);
}

async function say(app: App, session: string, content: string): Promise<void> {
  await app.call(`POST /api/local/sessions/${session}/messages`, { content });
}

describe("GET /api/search (contract 31)", () => {
  it("finds messages, results and memory with all words, newest first, with the places of the words", async () => {
    await using app = await openApp({ inMemory: true, config });
    const worker = await app.call("POST /api/workers", { name: "Echo", engine: "echo" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await say(app, session.id, "The invoice of Müller\nis 42 EUR");
    await app.settle();
    await app.call("PUT /api/memory/entry", { scope: "global", key: "invoices", value: "go to MÜLLER" });
    const hits = await app.call(`GET /api/search?q=${encodeURIComponent("müller INVOICE")}`);
    expect(hits.map(({ kind, id }: Json) => [kind, id])).toEqual([
      ["memory", "invoices"],
      ["message", expect.any(String)],
      ["result", expect.any(String)],
      ["message", expect.any(String)],
    ]);
    const ids = hits.slice(1).map(({ id }: Json) => id);
    expect(ids).toEqual(ids.toSorted().toReversed());
    expect(hits[1]).toMatchObject({ session_key: `local:${session.id}`, worker_id: worker.id });
    const { excerpt, ranges } = hits[3];
    expect(excerpt).toBe("The invoice of Müller is 42 EUR");
    expect(ranges.map(([from, to]: [number, number]) => excerpt.slice(from, to))).toEqual([
      "invoice",
      "Müller",
    ]);
    expect(await find(app, "q=invoice%20missing")).toEqual([]);
    expect(await find(app, "q=invoices&in=memory")).toEqual(["invoices go to MÜLLER"]);
    expect(await find(app, `q=invoice&in=results,messages&worker_id=${worker.id}`)).toHaveLength(2);
    expect(await find(app, `q=invoice&session_key=local:${session.id}&in=messages`)).toHaveLength(2);
    expect(await find(app, "q=invoice&session_key=local:other")).toEqual([]);
    expect(await find(app, `q=invoice&since=${Date.now() + 60_000}`)).toEqual([]);
  });
});

describe("rights of the search (contract 31) [FND-1]", () => {
  it("each kind requires its scope, and without any nothing is found or counted [FND-1]", async () => {
    await using app = await openApp({ inMemory: true });
    const worker = await app.call("POST /api/workers", { name: "Echo", engine: "echo" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await say(app, session.id, "the secret plan");
    await app.settle();
    await app.call("PUT /api/memory/entry", { scope: "global", key: "plan", value: "secret" });
    const kindsOf = async (headers: Record<string, string>) => {
      const reply = await app.send("GET /api/search?q=secret", undefined, headers);
      if (reply.status === 200) return [...new Set(reply.body.map(({ kind }: Json) => kind))].toSorted();
      expect(reply.headers.get("x-total-count")).toBeNull();
      return reply.status;
    };
    const all = ["memory", "message", "result"];
    for (const role of ["viewer", "operator", "admin"]) {
      const { headers } = await createUser(app, `a ${role}`, role);
      expect([role, await kindsOf(headers)]).toEqual([role, all]);
    }
    const scopes = { messages: "read:messages", results: "read:executions", memory: "read:memory" };
    const kinds = { messages: "message", results: "result", memory: "memory" };
    for (const one of ["messages", "results", "memory"] as const) {
      const { headers } = await createToken(app, one, [scopes[one], "read:workers"]);
      expect(await kindsOf(headers)).toEqual([kinds[one]]);
      for (const other of ["messages", "results", "memory"] as const) {
        const reply = await app.send(`GET /api/search?q=secret&in=${other}`, undefined, headers);
        expect([one, other, reply.status, reply.body.required_scope]).toEqual(
          one === other ? [one, other, 200, undefined] : [one, other, 403, scopes[other]],
        );
      }
      expect((await app.send(`GET /api/search?q=secret&in=${one},chat`, undefined, headers)).status).toBe(
        400,
      );
    }
    const none = await createToken(app, "none", ["read:workers", "write:messages"]);
    expect(await kindsOf(none.headers)).toBe(403);
    expect(
      (await fetchAs(app, "GET /api/search?q=secret", { headers: { authorization: "Bearer x" } })).status,
    ).toBe(401);
  });

  it("a run finds its own conversation and its memory, by whatever filter or cursor [FND-1]", async () => {
    await using app = await openApp({ inMemory: true, config });
    const own = await startRun(app, ["read:*"]);
    const other = await startRun(app, ["read:*"], "Other");
    await say(app, own.sessionId, "the secret of Ada");
    await say(app, other.sessionId, "the secret of Bob");
    for (const [scope, value] of [["global", "all"], [own.sessionKey, "Ada"], [other.sessionKey, "Bob"]]) {
      await app.call("PUT /api/memory/entry", { scope, key: "secret", value });
    }
    await app.db.write([{
      sql: "update execution set result = 'the secret result of ' || worker_name",
      args: [],
    }]);
    const seen = (query: string) => find(app, query, own.headers);
    const mine = ["secret Ada", "secret all", "the secret of Ada", "the secret result of Agent"];
    const short = mine.toSorted();
    expect((await seen("q=secret")).toSorted()).toEqual(short);
    // Two characters, for which the service reads the newest rows.
    expect((await seen("q=se")).toSorted()).toEqual(short);
    expect((await seen(`q=secret&session_key=${own.sessionKey}`)).toSorted()).toEqual(
      short.filter((text) => text !== "secret all"),
    );
    for (
      const query of [
        `q=secret&session_key=${other.sessionKey}`,
        "q=secret&session_key=local:unknown",
        `q=secret&worker_id=${other.workerId}`,
        `q=se&worker_id=${other.workerId}`,
        "q=Bob",
        "q=Bo",
      ]
    ) expect([query, await seen(query)]).toEqual([query, []]);
    for (const { id } of await app.call("GET /api/messages/inbound")) {
      expect((await seen(`q=secret&cursor=${id}`)).join()).not.toContain("Bob");
    }
    const reply = await app.send(`GET /api/search?q=secret&in=messages`, undefined, own.headers);
    expect(reply.body).toHaveLength(1);
    for (const name of ["x-total-count", "link", "warning"]) expect(reply.headers.get(name)).toBeNull();
    const narrow = await startRun(app, ["read:memory"], "Narrow");
    expect(await find(app, "q=secret", narrow.headers)).toEqual(["secret all"]);
    const all = await startRun(app, ["*:*"], "All");
    expect(await find(app, "q=secret%20Bob", all.headers)).toHaveLength(2);
  });

  it("a deleted conversation, entry or run is gone from the index, also by retention [FND-1]", async () => {
    await using app = await openApp({ inMemory: true });
    const worker = await app.call("POST /api/workers", { name: "Echo", engine: "echo" });
    const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await say(app, session.id, "the secret plan");
    await app.settle();
    const key = `local:${session.id}`;
    await app.call("PUT /api/memory/entry", { scope: key, key: "plan", value: "secret" });
    await app.call("PUT /api/memory/entry", { scope: "global", key: "old", value: "secret" });
    await app.call("PUT /api/memory/entry", { scope: "global", key: "old", value: "changed" });
    expect(await find(app, "q=secret")).toHaveLength(4);
    await app.call(`DELETE /api/local/sessions/${session.id}`);
    expect(await find(app, "q=secret")).toEqual(["the secret plan"]);
    const again = await app.call("POST /api/local/sessions", { worker_id: worker.id });
    await say(app, again.id, "the secret plan");
    await app.settle();
    expect(await find(app, "q=secret")).toHaveLength(4);
    const later = Date.now() + 60_000;
    await app.db.write([pruneInbound(later), pruneSentReplies(later), pruneTasks(later)]);
    await app.db.write([deleteExecutions(await listOldExecutions(app.db, later))]);
    expect(await find(app, "q=secret")).toEqual([]);
    const number = async (sql: string) => await app.db.readValue<number>(sql);
    expect(await number("select count(*) from search_entry")).toBe(1);
    expect(await number("select count(*) from search_text where search_text match '\"sec\"'")).toBe(0);
    await app.db.write([{
      sql: "insert into search_text (search_text) values ('integrity-check')",
      args: [],
    }]);
  });
});

describe("the tool recall (contract 31)", () => {
  it("finds messages and results of the run's own conversation and worker, without a scope, and memory only with one [FND-1]", async () => {
    await using app = await openApp({ inMemory: true, config });
    const own = await startRun(app, ["write:messages"]);
    const other = await startRun(app, ["*:*"], "Other");
    await say(app, own.sessionId, "the secret of Ada");
    await say(app, other.sessionId, "the secret of Bob");
    await app.call("PUT /api/memory/entry", { scope: "global", key: "secret", value: "all" });
    await app.call("PUT /api/memory/entry", { scope: other.sessionKey, key: "secret", value: "Bob" });
    await app.db.write([{
      sql: "update execution set result = 'the secret result of ' || worker_name",
      args: [],
    }]);
    const recall = async (headers: Record<string, string>, query: object) => {
      const reply = await callTool(app, headers, query);
      return JSON.parse(reply).map((hit: Json) => hit.excerpt).toSorted();
    };
    const found = ["the secret of Ada", "the secret result of Agent"];
    expect(await recall(own.headers, { q: "secret" })).toEqual(found);
    expect(await recall(own.headers, { q: "se" })).toEqual(found);
    expect(await recall(own.headers, { q: "Bob" })).toEqual([]);
    // Another worker's result in the conversation is not the run's own.
    await app.db.write([{
      sql: "update execution set session_key = ? where id = ?",
      args: [own.sessionKey, other.executionId],
    }]);
    expect(await recall(own.headers, { q: "secret" })).toEqual(found);
    await app.call(`PUT /api/workers/${own.workerId}`, { scopes: ["read:memory"] });
    expect(await recall(own.headers, { q: "secret" })).toEqual(["secret all", ...found]);
    expect(await statusOf(app, "GET /api/recall?q=secret", {})).toBe(403);
  });
});

describe("search: false (contract 31)", () => {
  it("keeps no index; a later start with the search indexes what was stored without", async () => {
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    const start = (search: boolean) => openApp({ dataDir, config: { search } });
    {
      await using app = await start(true);
      const worker = await app.call("POST /api/workers", { name: "Echo", engine: "echo" });
      const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
      await say(app, session.id, "the first text");
      await app.settle();
      await app.call("PUT /api/memory/entry", { scope: "global", key: "the", value: "memory text" });
    }
    {
      await using app = await start(false);
      expect(await statusOf(app, "GET /api/search?q=first", {})).toBe(409);
      expect(await app.db.readValue("select count(*) from search_entry")).toBe(0);
      const [session] = await app.call("GET /api/local/sessions");
      await say(app, session.id, "the second text");
      await app.settle();
      expect(await app.db.readValue("select count(*) from search_entry")).toBe(0);
    }
    await using app = await start(true);
    expect(await find(app, "q=text%20the")).toHaveLength(7);
    expect(await find(app, "q=text%20the&in=messages")).toEqual([
      ...["the second text", "the second text", "the first text", "the first text"],
    ]);
    await app.stop();
    await Deno.remove(dataDir, { recursive: true });
  });
});

describe("pages and limits of the search (contract 31)", () => {
  it("pages by cursor, also when its row is gone, and says partial beyond the newest rows", async () => {
    await using app = await openApp({ inMemory: true });
    const add = (from: number, to: number) =>
      app.db.write([{
        sql: `with recursive n (i) as (select ${from} union all select i + 1 from n where i < ${to})
          insert into inbound_message (id, session_key, platform, platform_message_id, content, status, due_at, received_at)
          select printf('%08x-%04x-7000-8000-%012x', i >> 16, i & 65535, i), 'team:C', 'team', 'p' || i,
            '部署 of the build ' || i, 'bee_processed', 0, i from n`,
        args: [],
      }]);
    await add(1, 120);
    const seen: string[] = [];
    let path: string | undefined = "/api/search?q=build";
    for (; path !== undefined; path = nextPath(await app.send(`GET ${path}`))) {
      const hits = await app.call(`GET ${path}`);
      expect(hits.length).toBeLessThanOrEqual(50);
      seen.push(...hits.map((hit: Json) => hit.excerpt));
      await app.db.write([{ sql: "delete from inbound_message where id = ?", args: [hits.at(-1).id] }]);
    }
    // The service counts the rows again from the deleted row on.
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen[0]).toBe("部署 of the build 120");
    expect(seen.at(-1)).toBe("部署 of the build 1");
    const warning = async (query: string) =>
      (await app.send(`GET /api/search?${query}`)).headers.get("warning") ?? "";
    expect(await warning(`q=${encodeURIComponent("部署")}`)).toBe("");
    await add(1_000, 21_000);
    expect(await warning(`q=${encodeURIComponent("部署")}`)).toContain("partial");
    expect(await find(app, `q=${encodeURIComponent("部署")}&session_key=team:C`)).toHaveLength(50);
    expect(await warning(`q=${encodeURIComponent("部署 of")}&session_key=team:C`)).toContain("partial");
    expect(await warning("q=build")).toBe("");
    expect(await find(app, `q=${encodeURIComponent("署 o")}&session_key=team:none`)).toEqual([]);
  });

  it("refuses more words or a longer query than the limits, and takes every character as it is", async () => {
    await using app = await openApp({ inMemory: true });
    const words = (count: number) => Array.from({ length: count }, (_, n) => `word${n}`).join("%20");
    expect(await statusOf(app, `GET /api/search?q=${words(10)}`, {})).toBe(200);
    expect(await statusOf(app, `GET /api/search?q=${words(11)}`, {})).toBe(400);
    expect(await statusOf(app, `GET /api/search?q=${"a".repeat(200)}`, {})).toBe(200);
    expect(await statusOf(app, `GET /api/search?q=${"a".repeat(201)}`, {})).toBe(400);
    expect(await statusOf(app, "GET /api/search?q=%20", {})).toBe(400);
    const odd = `100%_a\\b "c" (d) *e* OR NOT a:b n-i a/b [d] {e} ^f$ g|h i#j, k~l&m 😀😀😀 ${
      String.fromCodePoint(0xf3001).repeat(3)
    }`;
    await app.call("PUT /api/memory/entry", { scope: "global", key: "odd", value: odd });
    await app.call("PUT /api/memory/entry", {
      scope: "global",
      key: "long",
      value: "x".repeat(300) + "needle",
    });
    for (const word of odd.split(" ")) {
      expect([word, await find(app, `q=${encodeURIComponent(word)}`)]).toEqual([word, [`odd ${odd}`]]);
    }
    const [hit] = await app.call("GET /api/search?q=NEEDLE");
    expect(hit.excerpt).toHaveLength(240);
    const [[from, to]] = hit.ranges;
    expect(hit.excerpt.slice(from, to)).toBe("needle");
  });
});

function nextPath({ headers }: { headers: Headers }): string | undefined {
  return /<([^>]+)>/.exec(headers.get("link") ?? "")?.[1];
}

async function statusOf(app: App, route: string, headers: Record<string, string>): Promise<number> {
  return (await app.send(route, undefined, headers)).status;
}

/** Calls the tool recall of the MCP server. */
async function callTool(app: App, headers: Record<string, string>, query: object): Promise<string> {
  const reply = await fetchAs(app, "POST /mcp", {
    headers: {
      ...headers,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-06-18",
    },
    body: JSON.stringify({
      ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
      params: { name: "recall", arguments: query },
    }),
  });
  const text = await reply.text();
  return JSON.parse(/^data:(.*)$/m.exec(text)?.[1] ?? text).result.content[0].text;
}
