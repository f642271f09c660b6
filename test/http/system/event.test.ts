import { describe, expect, it } from "vitest";
import { openApp } from "../../harness/service/app.ts";
import { StreamClient } from "../../harness/stream.ts";

const JSON_PAGE = { accept: "application/json" };

describe("GET /api/events (contract 4, Journal; contract 4, Stream)", () => {
  it("returns the latest events as a page, oldest first, and continues after a number", async () => {
    await using app = await openApp();
    for (const name of ["a", "b", "c"]) await app.call("POST /api/workers", { name });
    const latest = await app.send("GET /api/events?page_size=2", undefined, JSON_PAGE);
    expect(latest.body.map((one: { data: { name: string } }) => one.data.name)).toEqual(["b", "c"]);
    expect(latest.body[1]).toEqual({
      seq: expect.any(Number),
      at: expect.any(Number),
      kind: "worker.created",
      session_key: "",
      worker_id: expect.any(String),
      task_id: "",
      execution_id: "",
      message_id: "",
      actor: "user:admin",
      data: { name: "c" },
    });
    const page = await app.send(
      "GET /api/events?after=0&page_size=2&kind=worker.created",
      undefined,
      JSON_PAGE,
    );
    expect(page.body.map((one: { data: { name: string } }) => one.data.name)).toEqual(["a", "b"]);
    const link = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1];
    const rest = await app.send(`GET ${link}`, undefined, JSON_PAGE);
    expect([rest.body.length, rest.headers.get("link")]).toEqual([1, null]);
  });

  it("filters by conversation, worker, task and kind", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const session = await app.call("POST /api/local/sessions");
    await app.call(`POST /api/local/sessions/${session.id}/messages`, { content: "hi" });
    await app.settle();
    const [task] = await app.call(`GET /api/tasks?worker_id=${worker.id}`);
    const kinds = async (query: string) =>
      (await app.send(`GET /api/events?after=0&${query}`, undefined, JSON_PAGE)).body
        .map((one: { kind: string }) => one.kind);
    expect(await kinds(`task_id=${task.id}`)).toEqual([
      "task.created",
      "execution.started",
      "execution.completed",
      "task.completed",
    ]);
    expect(await kinds(`worker_id=${worker.id}&kind=worker.created,message.sent`)).toEqual([
      "worker.created",
      "message.sent",
    ]);
    expect((await kinds(`session_key=local:${session.id}`))[0]).toBe("chat.created");
    for (const query of ["kind=nothing", "after=-1", "page_size=101", "worker_id=x", "colour=red"]) {
      expect((await app.send(`GET /api/events?${query}`, undefined, JSON_PAGE)).status).toBe(400);
    }
  });

  it("streams all events live and resumes after the last id", async () => {
    await using app = await openApp();
    const headers = { authorization: `Bearer ${await app.token()}` };
    const first = await StreamClient.open(`${app.url}/api/events?kind=worker.created`, headers);
    await first.until((client) => client.comments.length > 0);
    await app.call("POST /api/workers", { name: "a" });
    await first.until((client) => client.events.length === 1);
    await first.close();
    const [seen] = first.events;
    expect(seen).toMatchObject({ event: "event", data: { kind: "worker.created", data: { name: "a" } } });
    expect(seen?.id).toBe(String(seen?.data.seq));
    await app.call("POST /api/workers", { name: "b" });
    const again = await StreamClient.open(`${app.url}/api/events?kind=worker.created`, {
      ...headers,
      "last-event-id": seen?.id ?? "",
    });
    await again.until((client) => client.events.length === 1);
    expect(again.events[0]?.data.data.name).toBe("b");
    await again.close();
    const lost = await StreamClient.open(`${app.url}/api/events`, {
      ...headers,
      "last-event-id": "nonsense",
    });
    await lost.until((client) => client.named("event").length > 2);
    expect(lost.events[0]?.event).toBe("reset");
    await lost.close();
  });
});
