import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { ctl } from "../../harness/terminal.ts";
import { readAll } from "../requests.ts";
import { startRun } from "../../harness/service/run.ts";

const entry = (scope: string, key: string) =>
  `/api/memory/entry?scope=${encodeURIComponent(scope)}&key=${encodeURIComponent(key)}`;

describe("/api/memory (interface 4.2, contract 3)", () => {
  it("saves, replaces, gets and deletes an entry of any scope", async () => {
    await using app = await openApp();
    for (const scope of ["global", "local:some/where?", "telegram:42 🚀"]) {
      const saved = await app.call("PUT /api/memory/entry", { scope, key: "k/1", value: "a\nb" });
      expect(saved).toEqual({ scope, key: "k/1", value: "a\nb", updated_at: expect.any(Number) });
      expect(await app.call(`GET ${entry(scope, "k/1")}`)).toEqual(saved);
      await app.call("PUT /api/memory/entry", { scope, key: "k/1", value: "" });
      expect((await app.call(`GET ${entry(scope, "k/1")}`)).value).toBe("");
      expect(await app.call(`DELETE ${entry(scope, "k/1")}`)).toEqual({ status: "deleted" });
      expect((await app.send(`GET ${entry(scope, "k/1")}`)).status).toBe(404);
      expect((await app.send(`DELETE ${entry(scope, "k/1")}`)).status).toBe(404);
    }
  });

  it("lists the entries with a text in the key or the value, page by page", async () => {
    await using app = await openApp();
    const save = (key: string, value: string) =>
      app.call("PUT /api/memory/entry", { scope: "global", key, value });
    await save("tone", "friendly");
    await save("friend list", "Bob");
    await save("other", "100 % of it");
    const list = async (text: string, rest = "") => {
      const url = `GET /api/memory?scope=global&text=${encodeURIComponent(text)}${rest}`;
      return (await app.call(url) as { key: string }[]).map(({ key }) => key);
    };
    expect(await list("FRIEND")).toEqual(["friend list", "tone"]);
    expect(await list("FRIEND", "&page_size=1&page=2")).toEqual(["tone"]);
    expect(await list("friend", "&cursor=friend%20list")).toEqual(["tone"]);
    expect(await list("%")).toEqual(["other"]);
    const reply = await app.send("GET /api/memory?scope=global&text=friend&page_size=1");
    expect(reply.headers.get("x-total-count")).toBe("2");
    expect((await ctl(app, "memory get --scope global --text bob --json")).out).toContain("friend list");
  });

  it("lists a scope by key, by page and cursor", async () => {
    await using app = await openApp();
    for (const key of ["b", "ä", "c", "a", "B"]) {
      await app.call("PUT /api/memory/entry", { scope: "global", key, value: key });
    }
    await app.call("PUT /api/memory/entry", { scope: "local:x", key: "z", value: "" });
    const keys = (rows: { key: string }[]) => rows.map((one) => one.key);
    const { rows, totals } = await readAll(app, "/api/memory?scope=global&page_size=2");
    expect([keys(rows), totals]).toEqual([["B", "a", "b", "c", "ä"], ["5", "5", "5"]]);
    expect(keys(await app.call("GET /api/memory?scope=global&page_size=2&page=3"))).toEqual(["ä"]);
    expect(await app.call("GET /api/memory?scope=nowhere")).toEqual([]);
  });

  it("refuses missing, too long and unknown values, and a full scope", async () => {
    await using app = await openApp();
    const bad = [
      [{ key: "k", value: "v" }, "scope"],
      [{ scope: "global", value: "v" }, "key"],
      [{ scope: "global", key: "k" }, "value"],
      [{ scope: "", key: "k", value: "v" }, "scope"],
      [{ scope: "global", key: "k".repeat(257), value: "v" }, "key"],
      [{ scope: "global", key: "k", value: "v".repeat(256 * 1024 + 1) }, "value"],
      [{ scope: "global", key: "k", value: null }, "value"],
    ] as const;
    for (const [body, path] of bad) {
      const reply = await app.send("PUT /api/memory/entry", body);
      expect([reply.status, reply.body.errors[0].path]).toEqual([400, path]);
    }
    expect((await app.send("GET /api/memory")).body.errors[0].path).toBe("scope");
    await app.db.write([{
      sql: `insert into memory (scope, key, value, updated_at)
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 1000)
        select 'full', 'k' || i, '', 0 from n`,
      args: [],
    }]);
    expect((await app.send("PUT /api/memory/entry", { scope: "full", key: "more", value: "" })).status).toBe(
      409,
    );
    expect((await app.send("PUT /api/memory/entry", { scope: "full", key: "k7", value: "x" })).status).toBe(
      200,
    );
  });

  it("a run reads the memory of its conversation and the global one, and writes only the former (contract 2)", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const { headers, sessionKey } = await startRun(app);
    await app.call("PUT /api/memory/entry", { scope: "global", key: "tone", value: "short" });
    await app.call("PUT /api/memory/entry", { scope: "local:foreign", key: "secret", value: "s" });
    const as = (route: string, body?: unknown) => app.send(route, body, headers);
    expect((await as("GET /api/memory?scope=global")).body).toHaveLength(1);
    expect((await as("PUT /api/memory/entry", { scope: sessionKey, key: "k", value: "v" })).status).toBe(200);
    expect((await as(`GET /api/memory?scope=${sessionKey}`)).body).toHaveLength(1);
    const global = await as("PUT /api/memory/entry", { scope: "global", key: "tone", value: "rude" });
    expect([global.status, global.body.required_scope]).toEqual([403, "*:memory"]);
    expect((await as(`DELETE ${entry("global", "tone")}`)).status).toBe(403);
    const replies = [
      await as("GET /api/memory?scope=local:foreign"),
      await as(`GET ${entry("local:foreign", "secret")}`),
      await as(`DELETE ${entry("local:foreign", "secret")}`),
      await as("PUT /api/memory/entry", { scope: "local:foreign", key: "secret", value: "" }),
    ];
    for (const reply of replies) expect(reply.status).toBe(404);
    const trusted = await startRun(app, ["read:memory", "*:memory"], "Trusted");
    const write = { scope: "global", key: "tone", value: "kind" };
    expect((await app.send("PUT /api/memory/entry", write, trusted.headers)).status).toBe(200);
  });
});
