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

describe("GET /api/search (contract 28)", () => {
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

describe("rights of the search (contract 28) [FND-1]", () => {
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
