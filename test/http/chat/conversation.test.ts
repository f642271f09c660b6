import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";

describe("GET /api/conversations (contract 17.6)", () => {
  it("lists each conversation once with its last message, latest first", async () => {
    await using app = await openApp({ inMemory: true, config: { engines: buildFakeEngines() } });
    const first = await app.call("POST /api/local/sessions", { name: "First" });
    const second = await app.call("POST /api/local/sessions", { name: "Second" });
    const list = (query = "") => app.call(`GET /api/conversations${query}`);
    const names = async (query = "") => (await list(query)).map((one: { name: string }) => one.name);
    expect(await names()).toEqual(["Second", "First"]);
    expect((await list())[0]).toEqual({
      id: second.id,
      session_key: `local:${second.id}`,
      platform: "local",
      session_id: second.id,
      name: "Second",
      worker_id: null,
      role: "",
      text: "",
      updated_at: second.created_at,
      active_tasks: 0,
    });
    await app.call(`POST /api/local/sessions/${first.id}/messages`, { content: "hello" });
    expect(await names()).toEqual(["First", "Second"]);
    await app.call(`PUT /api/local/sessions/${first.id}`, { name: "Renamed" });
    expect(await names("?platform=local")).toEqual(["Renamed", "Second"]);
    expect(await names("?platform=slack")).toEqual([]);
    expect(await names(`?session_key=local:${second.id}`)).toEqual(["Second"]);
    const page = await app.send("GET /api/conversations?page_size=1");
    expect(page.headers.get("x-total-count")).toBe("2");
    await app.call(`DELETE /api/local/sessions/${first.id}`);
    expect(await names()).toEqual(["Second"]);
  });

  it("keeps a local conversation without messages, and drops one of another platform with its last message", async () => {
    await using app = await openApp({ inMemory: true });
    const session = await app.call("POST /api/local/sessions", { name: "Here" });
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "hello" });
    await app.db.write([{
      sql:
        `insert into outbound_message (id, session_key, platform, message_id, content, status, source_type, source_id,
          created_at)
        values ('01a1fd23-4a4c-746f-99ac-8860e2641168', 'team:C1', 'team', 'm', ?, 'sent', 'bee', '', 5)`,
      args: ["é".repeat(300)],
    }]);
    const keys = async () =>
      (await app.call("GET /api/conversations")).map((one: { session_key: string }) => one.session_key);
    expect((await keys()).toSorted()).toEqual([`local:${session.id}`, "team:C1"]);
    const [said] = await app.call("GET /api/conversations?platform=team");
    expect(said).toMatchObject({ role: "bee", text: "é".repeat(200), updated_at: 5, session_id: null });
    for (const table of ["inbound_message", "outbound_message"]) {
      await app.db.write([{ sql: `delete from ${table}`, args: [] }]);
    }
    expect(await keys()).toEqual([`local:${session.id}`]);
  });
});
