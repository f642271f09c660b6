import { describe, expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";

describe("POST /api/messages/explain (contract 16)", () => {
  it("names the rule, the worker and each score, sends nothing, and agrees with the real routing", async () => {
    await using app = await openApp({ inMemory: true });
    const make = (name: string, description: string) =>
      app.call("POST /api/workers", { name, description, engine: "echo" });
    const ada = await make("Ada", "Writes news about sport and weather");
    const bob = await make("Bob", "Cooks soup");
    const session = await app.call("POST /api/local/sessions", { worker_id: bob.id });
    const session_key = `local:${session.id}`;
    const explain = (content: string, more: object = {}) =>
      app.call("POST /api/messages/explain", { content, ...more });
    const match = await explain("the weather and the news, please");
    expect(match).toMatchObject({ rule: "match", worker_id: ada.id, worker_name: "Ada", reply: "" });
    expect(match.workers).toEqual([
      { id: ada.id, name: "Ada", paused: false, score: 2, words: ["new", "weather"] },
      { id: bob.id, name: "Bob", paused: false, score: 0, words: [] },
    ]);
    expect(await explain("the news", { session_key })).toMatchObject({ rule: "session", worker_id: bob.id });
    expect(await explain("@Ada the soup", { session_key })).toMatchObject({
      rule: "mention",
      worker_id: ada.id,
    });
    const nobody = await explain("xyz");
    expect([nobody.rule, nobody.worker_id, nobody.reply]).toEqual([
      "nobody",
      null,
      expect.stringContaining("@Ada"),
    ]);
    expect(await app.call("GET /api/messages/inbound")).toEqual([]);
    const { message_id } = await app.call(`POST /api/local/sessions/${session.id}/messages`, {
      content: "@Ada the soup",
    });
    await app.settle();
    const { routing, tasks } = await app.call(`GET /api/messages/${message_id}/trace`);
    expect(tasks[0].worker_id).toBe(ada.id);
    expect(routing[0].reason).toContain((await explain("@Ada the soup", { session_key })).reason);
  });
});
