import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { translateMarkdown } from "../../src/platform/markdown.ts";
import { WECOM_MARKDOWN } from "../../src/platform/wecom/format.ts";
import { parseMessage, type WeComMessage } from "../../src/platform/wecom/message.ts";
import { TestClock } from "../harness/clock.ts";
import { waitUntil } from "../harness/wait.ts";
import { WeComWorld } from "./worlds/wecom.ts";
import {
  buildDelivery,
  listInbound,
  openWorld,
  startPlatform,
  waitForState,
  waitForText,
} from "./worlds/open.ts";

const open = (world: WeComWorld, clock?: Clock) => openWorld("corp", world, { clock });

/** Fails the first two stores of a message. */
function failTwice(): () => void {
  let failures = 0;
  return () => {
    if (failures++ < 2) throw new Error("the disk is full");
  };
}

describe("the connection to WeCom (contract 10.4)", () => {
  it("reconnects after a drop or a lost subscription, and loses no reply", async () => {
    await using world = new WeComWorld();
    await using app = await open(world);
    await world.say("say first");
    await waitForText(world, "first");
    world.fake.drop();
    await world.say("say dropped");
    await waitForText(world, "dropped");
    await world.say("sleep 1");
    world.fake.forget();
    await waitForText(world, "slept 1");
    expect(world.fake.subscriptions).toBe(3);
    await app.settle();
    expect(world.sent()).toHaveLength(3);
  });

  it("reconnects after a silence of 2.5 ping intervals [PLT-6]", async () => {
    await using world = new WeComWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    await waitForState(app, "corp", "connected");
    world.fake.isDeaf = true;
    await waitUntil("it connects again", () => {
      clock.advance(5_000);
      return world.fake.subscriptions === 2;
    });
    expect(world.fake.pings).toBeGreaterThan(0);
  });

  it("reports another service that uses the bot, and does not compete with it [PLT-6]", async () => {
    await using world = new WeComWorld();
    await using app = await open(world);
    await waitForState(app, "corp", "connected");
    await using other = await startPlatform(world);
    await waitForState(app, "corp", "refused");
    expect(await app.call("GET /api/platforms/corp")).toMatchObject({
      error: "another program uses this bot, and WeCom allows one connection",
    });
    await app.until("platform.down");
    await world.say("hello");
    await waitUntil("the other service gets the message", () => other.came.length === 1);
    expect(world.fake.subscriptions).toBe(2);
  });

  it("stores a message later and in order after a failed write, since WeCom sends nothing twice [PLT-1]", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world, { before: failTwice() });
    for (const text of ["one", "two", "three"]) await world.say(text);
    await waitUntil("all three messages", () => there.came.length === 3);
    expect(there.texts()).toEqual(["one", "two", "three"]);
    expect(world.fake.subscriptions).toBe(1);
  });

  it("stores a press after a failed write, too, and ignores an empty event [PLT-1]", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world, { before: failTwice() });
    const from = { userid: "7" };
    const event = {
      eventtype: "template_card_event",
      template_card_event: { event_key: "q", task_id: "t" },
    };
    world.fake.push("aibot_event_callback", { msgid: "e1", from });
    world.fake.push("aibot_event_callback", { msgid: "e2", from, chattype: "single", event });
    await world.say("behind it");
    await waitUntil("both messages", () => there.came.length === 2);
    expect(there.came.map(({ text, choice }) => text || choice)).toEqual(["q", "behind it"]);
    expect(world.fake.subscriptions).toBe(1);
  });

  it("stops after storing what arrived, since WeCom sends nothing twice [PLT-1]", async () => {
    await using world = new WeComWorld();
    const begun = Promise.withResolvers<void>();
    await using there = await startPlatform(world, {
      async before() {
        begun.resolve();
        await new Promise((resolve) => setTimeout(resolve, 300));
      },
    });
    for (const text of ["one", "two"]) await world.say(text);
    await begun.promise;
    await there.platform.stop();
    expect(there.texts()[0]).toBe("one");
  });

  it("serves the test of the platform, which opens no second connection", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    expect(await there.platform.test()).toBe("the bot aib-1 is connected");
    expect(world.fake.subscriptions).toBe(1);
  });
});

describe("replies to WeCom (contract 10.3)", () => {
  it.each([[45_009, "limited"], [-1, "unreachable"], [40_058, "refused"]])(
    "a reply that WeCom refuses with %i is %s",
    async (code, why) => {
      await using world = new WeComWorld();
      await using there = await startPlatform(world);
      world.fake.modes.push(code);
      await expect(there.platform.deliver(buildDelivery("x"))).rejects.toMatchObject({ why });
    },
  );

  it("wait for a slow answer, need a connection, and mention no person", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    world.fake.modes.push("slow");
    await there.platform.deliver(buildDelivery("hello <@all> `<@7>`"));
    expect(world.sent().map(({ text }) => text)).toEqual(["hello <\u200b@all> `<\u200b@7>`"]);
    await there.platform.stop();
    await expect(there.platform.deliver(buildDelivery("x"))).rejects.toMatchObject({ why: "unreachable" });
    expect(world.faults()).toEqual([]);
  });

  it("don't wait for an answer after the socket ends", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    world.fake.modes.push("lost");
    const began = performance.now();
    await expect(there.platform.deliver(buildDelivery("x"))).rejects.toMatchObject({ why: "unanswered" });
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  it("upload files in pieces; a failure before the message means unsent", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    const text = "0123456789".repeat(120_000);
    const part = { text, media: null, asFile: "long.md" };
    const file = buildDelivery("", { part });
    await there.platform.deliver(file);
    expect(world.uploads()).toEqual([{ name: "long.md", text, chat: "7" }]);
    const sending = there.platform.deliver(file);
    world.fake.drop();
    await expect(sending).rejects.toMatchObject({ why: "unreachable" });
    await expect(there.platform.deliver(buildDelivery("", { part: { ...part, text: "" } }))).rejects
      .toMatchObject({
        why: expect.stringMatching(/refused|unreachable/),
      });
    expect(world.faults()).toEqual([]);
  });

  it("ask a long question before its buttons, and as a list with too many options", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    const choices = Array.from({ length: 7 }, (_, i) => ({ value: `q:${i}`, label: `Option ${i}` }));
    const long = "Which of these? ".repeat(20).trim();
    await there.platform.deliver(buildDelivery(long, { choices: choices.slice(0, 6) }));
    // The text of a question lists its options, so they must not be there twice.
    const listed = ["Which?", "", ...choices.map(({ label }, at) => `${at + 1}. ${label}`)].join("\n");
    await there.platform.deliver(buildDelivery(listed, { choices }));
    const [whole, card, list] = world.sent();
    expect(whole).toMatchObject({ text: long, buttons: [] });
    expect(card?.buttons).toHaveLength(6);
    expect(card?.text).toHaveLength(112);
    expect(list).toMatchObject({ text: listed, buttons: [] });
    expect(world.faults()).toEqual([]);
  });

  it("send a long question once when the first try of its card fails", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    const long = "Which of these? ".repeat(20).trim();
    const asking = buildDelivery(long, { choices: [{ value: "q:1", label: "Yes" }] });
    world.fake.modes.push("taken", 45_009);
    await expect(there.platform.deliver(asking)).rejects.toMatchObject({ why: "limited" });
    await there.platform.deliver(asking);
    expect(world.sent()).toMatchObject([{ text: long, buttons: [] }, { buttons: ["Yes"] }]);
  });

  it("show progress only for messages that the process knows", async () => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    const id = await world.say("hello");
    await waitUntil("the message", () => there.came.length === 1);
    const place = { chat: "7", thread: "" };
    const show = (answers: string, sentAs: string, text: string | null) =>
      there.platform.progress?.({ ...place, answers, sentAs, text });
    expect(await show("before the start", "", "working")).toBe("");
    expect(await show(id, "", null)).toBe("");
    const shown = await show(id, "", "working") ?? "";
    expect(await show(id, shown, "still working")).toBe(shown);
    expect(await show(id, shown, "")).toBe(shown);
    // WeCom accepts no change after the end.
    expect(await show(id, shown, "late")).toBe(shown);
    expect(world.fake.sent).toMatchObject([{ text: "✓", deleted: true }]);
  });
});

describe("files of WeCom (contract 10.1)", () => {
  it.each([0, 1, 15, 16, 31, 32, 33, 64, 200_003])("are decrypted with their key: %i bytes", async (size) => {
    await using world = new WeComWorld();
    await using there = await startPlatform(world);
    const bytes = Uint8Array.from({ length: size }, (_, i) => i % 251);
    const { url, aeskey } = world.fake.file("a b.txt", bytes);
    const fetched = await there.platform.fetch?.(
      JSON.stringify({ url, key: aeskey }),
      AbortSignal.timeout(5_000),
    );
    if (fetched === undefined || fetched instanceof ReadableStream) throw new Error("no name");
    expect(fetched.name).toBe("a b.txt");
    expect(new Uint8Array(await new Response(fetched.bytes).arrayBuffer())).toEqual(bytes);
  });

  it.each(["报告.pdf", "отчёт 100%.docx", "a;b's.txt"])(
    "keep their names, sent in any form: %s",
    async (name) => {
      await using world = new WeComWorld();
      await using there = await startPlatform(world);
      for (const hasPlainNames of [false, true]) {
        world.fake.hasPlainNames = hasPlainNames;
        const { url, aeskey } = world.fake.file(name, new TextEncoder().encode("x"));
        const fetched = await there.platform.fetch?.(
          JSON.stringify({ url, key: aeskey }),
          AbortSignal.timeout(5_000),
        );
        if (fetched === undefined || fetched instanceof ReadableStream) throw new Error("no name");
        await fetched.bytes.cancel();
        expect(fetched.name).toBe(name);
      }
    },
  );

  it("that are too large, deleted, on another host or encrypted with another key are named in the text", async () => {
    await using world = new WeComWorld();
    await using app = await open(world);
    await world.say("say ready");
    await waitForText(world, "ready");
    const said = async (file: object, words: string, times = 1) => {
      const from = { userid: "7" };
      const msgid = crypto.randomUUID();
      world.fake.push("aibot_msg_callback", { msgid, from, chattype: "single", msgtype: "file", file });
      await waitUntil(words, async () => {
        return (await listInbound(app)).filter((content) => content.includes(words)).length === times;
      });
    };
    const good = world.fake.file("a.txt", new TextEncoder().encode("a"));
    await said(
      { ...good, aeskey: btoa("k".repeat(32)) },
      "[Cannot fetch the file file: the key does not decrypt the file]",
    );
    await said({ ...good, aeskey: "short" }, "the key of the file is not valid");
    const outside = "WeCom named an address outside of WeCom";
    await said({ ...good, url: "http://localhost:1/files/f1" }, outside);
    await said({ ...good, url: "https://localhost:1/files/f1" }, outside, 2);
    world.fake.isExpired = true;
    await said(good, "WeCom answered 403");
    world.fake.isExpired = false;
    const large = world.fake.file("large.bin", new Uint8Array(60_000_000));
    await said(large, "it is larger than");
  });
});

describe("messages of WeCom", () => {
  const place = { msgid: "1", from: { userid: "7" } };

  it.each([
    ["a text", { msgtype: "text", text: { content: "hello @Ada" } }, "hello @Ada"],
    ["a voice", { msgtype: "voice", voice: { content: "spoken" } }, "spoken"],
    [
      "text and picture",
      {
        msgtype: "mixed",
        mixed: {
          msg_item: [{ msgtype: "text", text: { content: "look" } }, {
            msgtype: "image",
            image: { url: "https://x.qq.com/1", aeskey: "k" },
          }],
        },
      },
      "look",
    ],
  ])(
    "%s",
    (_name, said, text) => expect(parseMessage({ ...place, ...said })).toMatchObject({ text, chat: "7" }),
  );

  const picture = (number: number) => ({ url: `https://x.qq.com/${number}`, aeskey: "k" });

  it.each<[object, object]>([
    [{ msgtype: "text", text: { content: "the plan" } }, { text: "the plan" }],
    [{ msgtype: "image", image: picture(1) }, { files: 1 }],
    [{ msgtype: "file", file: picture(1) }, { files: 1 }],
    [{ msgtype: "video", video: picture(1) }, { files: 1 }],
    [{ msgtype: "voice", voice: { content: "spoken" } }, { text: "spoken" }],
    [
      {
        msgtype: "mixed",
        mixed: {
          msg_item: [{ msgtype: "text", text: { content: "two" } }, { msgtype: "image", image: picture(1) }, {
            msgtype: "image",
            image: picture(2),
          }],
        },
      },
      { text: "two", files: 2 },
    ],
    [{ msgtype: "template_card" }, { unreadable: ["a card"] }],
  ])("have the message that they reply to as an excerpt (contract-3, 20.10): %j", (quote, expected) => {
    const { text = "", files = 0, unreadable = [] } = expected as Record<string, unknown>;
    const said = { ...place, msgtype: "text", text: { content: "summarize" }, quote } as WeComMessage;
    const parsed = parseMessage(said);
    expect(parsed).toMatchObject({
      text: "summarize",
      excerpts: [{ kind: "quoted", author: "", text }],
      unreadable,
    });
    expect(parsed?.files).toHaveLength(files as number);
  });

  it.each<[object, string]>([
    [{ msgtype: "voice", voice: {} }, "a voice message"],
    [{ msgtype: "image" }, "a picture"],
    [{ msgtype: "mixed", mixed: { msg_item: [{ msgtype: "emotion" }] } }, "a message of the type emotion"],
    [{ msgtype: "mixed", mixed: { msg_item: 7 } }, "a part of the message"],
    [{ msgtype: "miniprogram" }, "a message of the type miniprogram"],
  ])("say what the service cannot read (contract-3, 20.10): %j", (said, noun) => {
    expect(parseMessage({ ...place, ...said } as WeComMessage)).toMatchObject({
      text: "",
      files: [],
      unreadable: [noun],
    });
  });

  it.each<[object, string]>([
    [{ msgtype: "link", link: { title: "News", url: "https://n.example" } }, "News\nhttps://n.example"],
    [
      { msgtype: "location", location: { name: "Office", latitude: 1, longitude: 2 } },
      "Location: Office (1, 2)",
    ],
    [{ msgtype: "markdown", markdown: { content: "**a**" } }, "**a**"],
  ])("have the text of other types: %j", (said, text) => {
    expect(parseMessage({ ...place, ...said } as WeComMessage)).toMatchObject({ text, unreadable: [] });
  });

  it("tell the person what the service cannot read (contract-3, 20.10)", async () => {
    await using world = new WeComWorld();
    await using app = await open(world);
    await world.say("say ready");
    await waitForText(world, "ready");
    const direct = { from: { userid: "7" }, chattype: "single" };
    world.fake.push("aibot_msg_callback", { ...direct, msgid: "1", msgtype: "miniprogram" });
    await waitForText(world, "Cannot read a message of the type miniprogram. Send text or a file.");
    const quote = { msgtype: "file", file: world.fake.file("plan.txt", new TextEncoder().encode("a")) };
    const text = { content: "say done" };
    world.fake.push("aibot_msg_callback", { ...direct, msgid: "2", msgtype: "text", text, quote });
    await waitForText(world, "done");
    expect((await app.call("GET /api/messages/inbound"))[0].media).toMatchObject({
      name: expect.stringMatching(/plan\.txt$/),
    });
  });

  it("lose the mention of the bot in a group, and only that", () => {
    const said = { ...place, chatid: "g1", chattype: "group" as const, msgtype: "text" };
    expect(parseMessage({ ...said, text: { content: "@Robot @Ada do it" } })).toMatchObject({
      chat: "g1",
      text: "@Ada do it",
      isDirect: false,
    });
    expect(parseMessage({ ...said, text: { content: "@Robot" } })).toMatchObject({ text: "@Robot" });
    expect(parseMessage({ ...said, text: { content: "  " } })).toBeNull();
  });

  it.each([
    ["**a *b*** ~~c~~ `d`", "**a *b*** c `d`"],
    ["# Head\n[x](https://a.example)", "### Head\n[x](https://a.example)"],
    ["```js\n<@a>\n```", "```js\n<\u200b@a>\n```"],
  ])("%s", (markdown, shown) => expect(translateMarkdown(markdown, WECOM_MARKDOWN)).toBe(shown));
});
