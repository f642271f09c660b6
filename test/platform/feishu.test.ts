import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { FeishuClient } from "../../src/platform/feishu/client.ts";
import { FEISHU_MARKDOWN } from "../../src/platform/feishu/format.ts";
import { Frame } from "../../src/platform/feishu/frame.ts";
import { type FeishuEvent, parseEvent } from "../../src/platform/feishu/message.ts";
import { Pieces } from "../../src/platform/feishu/pieces.ts";
import { showText } from "../../src/platform/feishu/send.ts";
import { translateMarkdown } from "../../src/platform/markdown.ts";
import type { App } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { waitForValue, waitUntil } from "../harness/wait.ts";
import { frameBytes, readFrame } from "./fakes/feishu_frame.ts";
import { FeishuWorld } from "./worlds/feishu.ts";
import { listInbound, listTexts, openWorld, readReply, waitForState, waitForText } from "./worlds/open.ts";

const open = (world: FeishuWorld, more: Record<string, unknown> = {}, clock?: Clock) =>
  openWorld("lark", world, { more, clock });

/** Asks a question about the newest message. Returns its id and its message. */
async function ask(world: FeishuWorld, app: App, text: string, options: string[]) {
  await app.settle();
  const [{ id: message_id }] = await app.call("GET /api/messages/inbound");
  const { id } = await app.call("POST /api/questions", { message_id, text, options });
  const message = await waitForValue(() => Promise.resolve(world.sent()[1] ?? null));
  return { id, message };
}

describe("Feishu (contract 10, decision 0023)", () => {
  it("loses no message when its connection drops, and joins pieces of long events in any order", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world);
    await waitUntil("a connection", () => world.fake.sockets.size === 1);
    world.fake.drop();
    await world.say("say dropped");
    await waitForText(world, "dropped");
    expect(world.fake.opened).toBe(2);
    world.pieces = 7;
    await world.say(`say ${"grüße ".repeat(200)}`);
    await waitUntil("all messages", () => listTexts(world).some((text) => text.length === 1_199));
    await waitUntil("all events are acknowledged", () => world.fake.waiting.size === 0);
    await app.settle();
    expect(listTexts(world)).toHaveLength(2);
    expect(world.faults()).toEqual([]);
  });

  it("reconnects after a silence of 2.5 ping intervals [PLT-6]", async () => {
    await using world = new FeishuWorld();
    const clock = new TestClock(Date.now());
    world.fake.pingS = 20;
    await using app = await open(world, {}, clock);
    await waitForState(app, "lark", "connected");
    const pings = world.fake.pings;
    await waitUntil("it sends a ping", () => {
      clock.advance(1_000);
      return world.fake.pings > pings;
    });
    expect(world.fake.opened).toBe(1);
    world.fake.isSilent = true;
    let waited = 0;
    await waitUntil("it connects again", () => {
      clock.advance(1_000);
      waited++;
      return world.fake.opened === 2;
    });
    expect(waited).toBeGreaterThan(25);
    world.fake.isSilent = false;
    await waitForState(app, "lark", "connected");
  });

  it("replaces an expired token, and sends nothing twice", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world);
    await world.say("say one");
    await waitForText(world, "one");
    const tokens = world.fake.tokens;
    world.fake.expire();
    await world.say("say two");
    await waitForText(world, "two");
    await app.settle();
    expect(listTexts(world)).toEqual(["one", "two"]);
    expect(world.fake.tokens).toBe(tokens + 1);
  });

  it("waits for the rate limit of the app as long as Feishu asks, and for a failing Feishu", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world);
    world.fake.modes.push({ status: 429, code: 99991400, reset: 1 }, { status: 500, code: 2200 });
    await world.say("say later");
    await waitForText(world, "later");
    await app.settle();
    const events = await app.db.read<{ data: string }>(
      "select data from journal where kind = 'message.undelivered' order by seq",
    );
    expect(events.map(({ data }) => JSON.parse(data).reason)).toEqual([
      "Feishu answered 99991400: refused",
      "Feishu answered 2200: refused",
    ]);
    expect(await readReply(app)).toMatchObject({ status: "sent", attempt: 1 });
  });

  it("answers in the chat when the answered message was deleted", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world);
    const id = await world.say("sleep 1");
    await app.until("execution.started");
    const said = world.fake.said.get(id);
    if (said !== undefined) said.gone = true;
    await waitForText(world, "slept 1");
    expect(world.sent().at(-1)).toMatchObject({ answers: "", chat: "7" });
  });

  it("sends plain text when a card can't show it", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world);
    await world.say("say begun");
    await waitForText(world, "begun");
    await app.settle();
    const [{ id }] = await app.call("GET /api/messages/inbound");
    const table = "| a |\n|---|\n| <at id=all> |\n";
    await app.call("POST /api/messages", { message_id: id, content: Array(6).fill(table).join("\n") });
    await waitUntil("the reply", () => world.sent().length === 2);
    expect(world.fake.sent[1]).toMatchObject({ isText: true });
    expect(world.faults()).toEqual([]);
  });

  it.each([230031, 230072])("ignores a message that Feishu can no longer change: %i", async (code) => {
    await using world = new FeishuWorld();
    const { app_id, app_secret, base_url } = world.config;
    const client = new FeishuClient({ app_id, app_secret, base_url, domain: "feishu" }, systemClock);
    const progress = { chat: "oc_p7", thread: "", answers: "", sentAs: "", text: null };
    const sentAs = await showText(client, progress, "at work");
    world.fake.unchangeable = code;
    expect(await showText(client, { ...progress, sentAs }, "still at work")).toBe(sentAs);
    expect(listTexts(world)).toEqual(["at work"]);
  });

  it("adds a reaction immediately, and removes it with the reply", async () => {
    await using world = new FeishuWorld();
    await using _app = await open(world);
    const id = await world.say("sleep 2");
    await waitUntil("a sign", () => [...world.fake.reactionsNow.values()].includes(id));
    await waitForText(world, "slept 2");
    await waitUntil("the sign is gone", () => world.fake.reactionsNow.size === 0);
    expect(world.fake.reactions).toEqual([`${id} Typing`]);
  });

  it("accepts the press of a button in a thread, and refuses a stranger with a toast", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world, { allow: ["7"], groups: "off" });
    await world.say("say begun");
    await waitForText(world, "begun");
    const { id, message } = await ask(world, app, `Go on? ${"x".repeat(3_000)}`, ["Yes", "No"]);
    world.press(message, "Yes", "66");
    await waitUntil("the toast", () => world.fake.toasts.length === 1);
    expect((await app.call(`GET /api/questions/${id}`)).status).toBe("open");
    world.press(message, "Yes");
    await waitUntil("it is answered", () => world.fake.toasts.length === 2);
    expect(world.fake.toasts).toEqual([
      { type: "error", content: "You can't answer here." },
      { type: "success", content: "Yes" },
    ]);
    expect(listTexts(world)[1]).toMatch(/^Go on\? x+…\n\n> Yes$/);
    expect((await app.call(`GET /api/questions/${id}`)).answer).toBe("Yes");
  });

  it("asks and answers in the thread of the question", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world);
    const place = { chat: "oc_5", isGroup: true, isMention: true, thread: "om_root" };
    await world.say("say begun", place);
    await waitForText(world, "begun");
    const { id, message } = await ask(world, app, "Go on?", ["Yes"]);
    world.press(message, "Yes");
    await waitUntil("it is answered", async () => {
      return (await app.call(`GET /api/questions/${id}`)).answer === "Yes";
    });
    expect(world.sent().every(({ thread }) => thread === "om_root")).toBe(true);
    expect((await app.call("GET /api/messages/inbound"))[0]).toMatchObject({
      session_key: "lark:oc_5:om_root",
    });
  });

  it("names a file in the text that is too large or deleted", async () => {
    await using world = new FeishuWorld();
    await using app = await open(world);
    await world.say("say large", { file: { name: "large.bin", bytes: new Uint8Array(60_000_000) } });
    const large = "[Cannot fetch the file large.bin: it is larger than 50 MiB]";
    await waitUntil(large, async () => (await listInbound(app)).includes(large));
    await world.say("say gone", {
      from: "8",
      file: { name: "gone.bin", bytes: new Uint8Array(1) },
      isGone: true,
    });
    const gone = "[Cannot fetch the file gone.bin: Feishu answered 234003: File not in msg.]";
    await waitUntil(gone, async () => (await listInbound(app)).includes(gone));
  });

  it("lets no agent mention all people, in text or in code", async () => {
    await using world = new FeishuWorld();
    await using _app = await open(world);
    await world.say("say <at id=all></at> `<at id=all></at>` & **you**");
    await waitUntil("a reply", () => listTexts(world).length === 1);
    expect(listTexts(world)[0]).toBe("<at id=all></at> `<\u200bat id=all><\u200b/at>` & **you**");
    expect(world.faults()).toEqual([]);
  });
});

describe("frames of Feishu", () => {
  it("have the bytes of the protocol", () => {
    const hex = [...Frame.ping(33).encode()].map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    expect(hex).toBe("08 00 10 00 18 21 20 00 2a 0c 0a 04 74 79 70 65 12 04 70 69 6e 67");
  });

  it("are answered by a copy of the frame, with its unknown fields and a new payload", () => {
    const given = { service: 33, method: 1, headers: { type: "event", message_id: "m" }, payload: "é{}" };
    const frame = Frame.decode(frameBytes(given));
    expect(frame.header("type")).toBe("event");
    expect(new TextDecoder().decode(frame.payload)).toBe("é{}");
    const answer = frame.answer(new TextEncoder().encode("x".repeat(300))).encode();
    expect(readFrame(answer)).toEqual({ ...given, payload: "x".repeat(300), logIdNew: "kept" });
  });

  it.each([[[0x08]], [[0x42, 0x05, 0x01]], [[0x0d, 1, 0]], [[0x0d, 1, 2, 3, 4]], [Array(20).fill(0xff)]])(
    "are refused when they are incomplete or of another kind: %j",
    (bytes) => expect(() => Frame.decode(new Uint8Array(bytes))).toThrow(/a frame of Feishu/),
  );

  it("are joined when all pieces have arrived", () => {
    const pieces = new Pieces();
    const add = (id: string, at: number, byte: number) =>
      pieces.add(id, { sum: 3, at }, new Uint8Array([byte]));
    expect([add("a", 2, 3), add("b", 0, 9), add("a", 0, 1), add("a", 0, 1)]).toEqual([
      null,
      null,
      null,
      null,
    ]);
    expect(add("a", 1, 2)).toEqual(new Uint8Array([1, 2, 3]));
    expect(() => pieces.add("c", { sum: 5_000, at: 0 }, new Uint8Array())).toThrow(/piece 0 of 5000/);
    expect(() => pieces.add("c", { sum: 2, at: 2 }, new Uint8Array())).toThrow(/piece 2 of 2/);
  });
});

describe("texts of Feishu", () => {
  it.each([
    ["**a *b* c** ~~d~~ `e<f`", "**a *b* c** ~~d~~ `e<f`"],
    ["# Head\n[x_y](https://a.example/?a=1&b_c=2)", "**Head**\n[x&#95;y](https://a.example/?a=1&b_c=2)"],
    ["```js\nif (a < b) {}\n```", "```js\nif (a < b) {}\n```"],
    ["not **closed, a_b & <at id=all>", "not &#42;&#42;closed, a&#95;b &amp; &lt;at id=all&gt;"],
    ["- one\n- two", "- one\n- two"],
  ])("%s", (markdown, shown) => expect(translateMarkdown(markdown, FEISHU_MARKDOWN)).toBe(shown));

  const said = (message_type: string, content: object, more = {}) =>
    parseEvent(
      {
        header: { event_id: "e", event_type: "im.message.receive_v1" },
        event: {
          sender: { sender_id: { open_id: "ou_1" }, sender_type: "user" },
          message: {
            message_id: "om_1",
            chat_id: "oc_1",
            chat_type: "group",
            message_type,
            content: JSON.stringify(content),
            ...more,
          },
        },
      } as FeishuEvent,
      "ou_bot",
    );

  it("are parsed as a person typed them", () => {
    const mentions = [
      { key: "@_user_1", id: { open_id: "ou_bot" }, name: "svc" },
      { key: "@_user_10", id: { open_id: "ou_2" }, name: "Bo" },
    ];
    expect(said("text", { text: "@_user_1 ask @_user_10 and @_all" }, { mentions })).toMatchObject({
      text: "ask @Bo and @all",
      isMentioned: true,
    });
    const content = [
      [{ tag: "at", user_id: "@_user_1" }, { tag: "text", text: " see " }, {
        tag: "a",
        text: "this",
        href: "https://a.example",
      }],
      [{ tag: "img", image_key: "img_1" }],
      [{ tag: "code_block", language: "GO", text: "x := 1\n" }],
    ];
    expect(said("post", { title: "Title", content }, { mentions })).toMatchObject({
      text: "Title\n see this (https://a.example)\n\n```go\nx := 1\n```".replace("\n ", "\n "),
      files: [{ ref: "om_1/resources/img_1?type=image", name: "image.png", size: null }],
    });
  });

  it.each([["post", { content: [[]] }], ["text", { text: "  " }], ["text", "no object"]])(
    "are ignored when they are empty: %s %j",
    (type, content) => expect(said(type, content as object)).toBeNull(),
  );
});
