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

describe("messages within one debounce window (contract 4.2)", () => {
  interface Said {
    by?: string;
    text: string;
    replyTo?: string;
    isData?: boolean;
    alone?: boolean;
  }

  /** Stores messages of one conversation, 10 ms apart, and returns the tasks and replies. */
  async function hear(
    said: Said[],
    { platform = "phone", own = "" }: { platform?: string; own?: string } = {},
  ): Promise<string[]> {
    const clock = new TestClock();
    const platforms = platform === "phone"
      ? { phone: { kind: "webhook" as const, worker: own || "Cy", secret: `whsec_${btoa("x".repeat(24))}` } }
      : {};
    await using app = await openApp({ clock, config: { bee: { quiet_window: "300ms" }, platforms } });
    const ids: Record<string, string> = {};
    for (const name of ["Ada", "Bob", "Cy"]) ids[name] = (await app.call("POST /api/workers", { name })).id;
    const local = await app.call("POST /api/local/sessions", own === "" ? {} : { worker_id: ids[own] });
    const session_key = platform === "local" ? `local:${local.id}` : `${platform}:1`;
    const replies = ["Ada", "Bob"].map((name) => ({
      id: `sent-${name}`,
      session_key,
      platform,
      message_id: "",
      source_type: "worker",
      source_id: ids[name] ?? "",
      content: "done",
      status: "sent",
      created_at: clock.now(),
    }));
    await app.db.write(insertRows("outbound_message", replies));
    await app.db.write(insertRows(
      "inbound_message",
      said.map(({ by = "ann", text, replyTo = "", isData = false, alone = false }, at) => {
        const id = createId();
        return {
          id,
          session_key,
          platform,
          platform_message_id: id,
          sender: by,
          reply_to: replyTo === "" ? "" : `sent-${replyTo}`,
          is_data: Number(isData),
          alone: Number(alone),
          content: text,
          media: text === ""
            ? JSON.stringify({ path: "/a", name: "a", size: 1, mime: "text/plain" })
            : "null",
          status: "received",
          due_at: clock.now() + 10 * at,
          received_at: clock.now() + 10 * at,
        };
      }),
    ));
    clock.advance(1_000);
    app.server.stages.find(({ name }) => name === "intake")?.wake();
    await app.settle();
    const tasks = await app.db.read<{ name: string; instruction: string }>(
      "select worker.name, instruction from task join worker on worker.id = worker_id order by task.id",
    );
    const answers = await app.db.read<{ content: string }>(
      "select content from outbound_message where source_type = 'bee' order by id",
    );
    return [
      ...tasks.map(({ name, instruction }) => `${name}: ${instruction}`),
      ...answers.map(({ content }) => content.split(".")[0] ?? ""),
    ];
  }

  it.each<[string, Said[], string[]]>([
    ["of one sender to no worker in particular", [{ text: "one" }, { text: "two" }], ["Cy: one\ntwo"]],
    ["of different senders", [{ text: "one" }, { by: "ben", text: "two" }], ["Cy: one", "Cy: two"]],
    [
      "of senders who take turns",
      [{ text: "one" }, { by: "ben", text: "1" }, { text: "two" }, { by: "ben", text: "2" }],
      ["Cy: one\ntwo", "Cy: 1\n2"],
    ],
    ["for different workers", [{ text: "@Ada one" }, { text: "@bob two" }], ["Ada: one", "Bob: two"]],
    [
      "with follow-ups",
      [{ text: "@Ada one" }, { text: "and" }, { text: "@bob two" }, { text: "more" }, { text: "@Ada three" }],
      ["Ada: one\nand", "Bob: two\nmore", "Ada: three"],
    ],
    ["for one worker, named twice", [{ text: "@Ada one" }, { text: "@ada two" }], ["Ada: one\n@ada two"]],
    ["where the second names another worker than the platform", [{ text: "one" }, { text: "two @Ada" }], [
      "Cy: one",
      "Ada: two @Ada",
    ]],
    ["where a name stands in code", [{ text: "@Ada one" }, { text: "`@bob`" }], ["Ada: one\n`@bob`"]],
    ["that reply to different workers", [{ text: "one", replyTo: "Ada" }, { text: "two", replyTo: "Bob" }], [
      "Ada: one",
      "Bob: two",
    ]],
    ["where only the first replies to a worker", [{ text: "one", replyTo: "Ada" }, { text: "two" }], [
      "Ada: one\ntwo",
    ]],
    ["where a reply names another worker", [{ text: "one", replyTo: "Ada" }, {
      text: "@bob two",
      replyTo: "Ada",
    }], [
      "Ada: one",
      "Bob: two",
    ]],
    ["with a file", [{ text: "@Ada one" }, { text: "" }, { text: "@Bob two" }, { text: "" }], [
      "Ada: one",
      "Bob: two",
    ]],
    ["where a file replies to another worker", [{ text: "@Ada one" }, { text: "", replyTo: "Bob" }], [
      "Ada: one",
      "Bob: ",
    ]],
    ["where a file replies to another worker than the platform's", [{ text: "one" }, {
      text: "",
      replyTo: "Bob",
    }], ["Cy: one", "Bob: "]],
    ["where a file replies after a message to several", [{ text: "@Ada and @Bob one" }, {
      text: "",
      replyTo: "Bob",
    }], ["Bob: ", "This message names several workers"]],
    ["with a file, where the reply names another worker", [{ text: "@Bob one", replyTo: "Ada" }, {
      text: "",
      replyTo: "Ada",
    }], ["Bob: one"]],
    [
      "where one names two workers",
      [{ text: "@Ada one" }, { text: "@Ada and @Bob two" }, { text: "" }, { text: "three" }],
      ["Ada: one", "Cy: three", "This message names several workers"],
    ],
    ["of a program, which names nobody", [
      { text: "@Ada one", isData: true },
      { text: "@Bob two", isData: true },
    ], ["Cy: @Ada one\n@Bob two"]],
    ["of programs", [{ by: "a", text: "one", isData: true }, { by: "b", text: "two", isData: true }], [
      "Cy: one",
      "Cy: two",
    ]],
    ["of a program and a person of the same name", [{ text: "one", isData: true }, { text: "two" }], [
      "Cy: one",
      "Cy: two",
    ]],
    ["next to one that stays alone", [{ text: "one" }, { text: "two", alone: true }, { text: "three" }], [
      "Cy: one",
      "Cy: two",
      "Cy: three",
    ]],
  ])("are merged by sender and addressee: %s", async (_what, said, expected) => {
    expect(await hear(said)).toEqual(expected);
  });

  it("are merged in a local session by its people and its worker", async () => {
    const said = [
      { by: "user:a", text: "one" },
      { by: "user:b", text: "1" },
      { by: "user:a", text: "two" },
      { by: "user:a", text: "@Bob three" },
    ];
    expect(await hear(said, { platform: "local", own: "Ada" })).toEqual([
      "Ada: 1",
      "Ada: one\ntwo",
      "Bob: three",
    ]);
    const toBob = [{ by: "user:a", text: "@Bob one" }, { by: "user:a", text: "two" }];
    expect(await hear(toBob, { platform: "local", own: "Ada" })).toEqual(["Bob: one\ntwo"]);
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
