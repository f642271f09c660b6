import { describe, expect, it } from "vitest";
import { createId } from "../../../src/base/id.ts";
import { computeQuietUntil, getQuietWindowMs, joinParts } from "../../../src/domain/chat/quiet_window.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { insertRows } from "../../harness/model/counters.ts";

/** Records the feeding and routing of messages by commit. */
function moves(app: App): string[][] {
  const seen: string[][] = [];
  const write = app.db.write.bind(app.db);
  app.db.write = (statements) => {
    const has = (status: string) => statements.some(({ sql }) => sql.includes(`set status = '${status}'`));
    const found = [...(has("feeding") ? ["fed"] : []), ...(has("bee_processed") ? ["routed"] : [])];
    if (found.length > 0) seen.push(found);
    return write(statements);
  };
  return seen;
}

async function say(app: App, id: string, ...texts: string[]): Promise<void> {
  for (const content of texts) await app.call(`POST /api/local/sessions/${id}/messages`, { content });
}

describe("intake (contract 4.2)", () => {
  it("computeQuietUntil() restarts with each message and never exceeds three windows", () => {
    expect(computeQuietUntil(1_000, 1_000, 300)).toBe(1_300);
    expect(computeQuietUntil(1_000, 1_200, 300)).toBe(1_500);
    expect(computeQuietUntil(1_000, 1_599, 300)).toBe(1_899);
    expect(computeQuietUntil(1_000, 1_600, 300)).toBe(1_900);
    expect(computeQuietUntil(1_000, 1_601, 300)).toBe(1_900);
    expect(getQuietWindowMs("local", undefined)).toBe(300);
    expect(getQuietWindowMs("other", undefined)).toBe(3_000);
    expect(getQuietWindowMs("other", 0)).toBe(0);
  });

  it("joinParts keeps the order and drops empty parts", () => {
    expect(joinParts([{ content: "a" }, { content: "" }, { content: "b" }])).toBe("a\nb");
  });

  it("merges messages that follow each other within the window, and waits for at most three windows", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock, config: { bee: { quiet_window: "300ms" } } });
    await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions");
    const texts = ["one", "two", "three", "four", "five"];
    for (const text of texts) {
      await say(app, id, text);
      if (text !== "five") clock.advance(200);
    }
    clock.advance(99);
    await app.until("message.received", 5);
    expect(await app.db.read("select distinct status from inbound_message")).toMatchObject([{
      status: "received",
    }]);
    clock.advance(1);
    await app.settle();
    const rows = await app.db.read<{ id: string; status: string; merged_into: string | null }>(
      "select id, status, merged_into from inbound_message order by id",
    );
    const last = rows.at(-1)?.id;
    expect(rows.map(({ status, merged_into }) => [status, merged_into])).toEqual([
      ...Array(4).fill(["merged", last]),
      ["bee_processed", null],
    ]);
    expect(await app.call("GET /api/executions")).toMatchObject([{ instruction: texts.join("\n") }]);
  });

  it("does not spin while more messages than a round takes wait in their windows", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock, inMemory: true, config: { bee: { quiet_window: "300ms" } } });
    await app.db.write(insertRows("inbound_message", received(1_100, clock.now())));
    const intake = app.server.stages.find(({ name }) => name === "intake");
    const rounds = intake?.rounds ?? NaN;
    intake?.wake();
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setTimeout(resolve));
    expect((intake?.rounds ?? NaN) - rounds).toBeLessThan(3);
    clock.advance(300);
    await app.settle();
    expect(await app.db.read("select distinct status from inbound_message")).toEqual([
      { status: "bee_processed" },
    ]);
  });

  it("feeds and routes in one commit when the rules decide", async () => {
    await using app = await openApp();
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const { id } = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    const seen = moves(app);
    await say(app, id, "hello");
    await app.settle();
    await say(app, id, "x".repeat(5_000));
    await app.settle();
    expect(seen).toEqual([["fed", "routed"], ["fed"], ["routed"]]);
    const routed = await app.db.read("select status, attempt from inbound_message");
    expect(routed).toEqual(Array(2).fill({ status: "bee_processed", attempt: 1 }));
  });

  it("feeds messages with a future time, and large batches, before routing", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock, inMemory: true, config: { bee: { quiet_window: "0ms" } } });
    const seen = moves(app);
    const intake = app.server.stages.find(({ name }) => name === "intake");
    await app.db.write(insertRows("inbound_message", received(1, clock.now() + 3_600_000)));
    intake?.wake();
    await app.settle();
    expect(seen.splice(0)).toEqual([["fed"], ["routed"]]);
    await app.db.write(insertRows("inbound_message", received(60, clock.now())));
    intake?.wake();
    await app.settle();
    expect(seen.filter((move) => move.length === 2)).toHaveLength(50);
  });

  it("creates tasks in the order of the messages across conversations", async () => {
    const clock = new TestClock();
    await using app = await openApp({ clock, config: { bee: { quiet_window: "300ms" } } });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const one = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    const two = await app.call("POST /api/local/sessions", { worker_id: ada.id });
    await say(app, two.id, "first");
    await say(app, one.id, "second");
    clock.advance(300);
    await app.settle();
    const tasks = await app.db.read<{ instruction: string }>("select instruction from task order by id");
    expect(tasks.map(({ instruction }) => instruction)).toEqual(["first", "second"]);
  });
});

/** Builds messages of different conversations. */
function received(count: number, at: number) {
  return Array.from({ length: count }, () => createId()).map((id) => ({
    id,
    session_key: `local:${id}`,
    platform: "local",
    platform_message_id: id,
    content: "hello",
    status: "received",
    due_at: at,
    received_at: at,
  }));
}
