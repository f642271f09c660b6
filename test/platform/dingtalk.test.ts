import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { formatWithTitle } from "../../src/platform/dingtalk/format.ts";
import { parseMessage, type RobotMessage } from "../../src/platform/dingtalk/message.ts";
import { packForSending } from "../../src/platform/dingtalk/zip.ts";
import type { App } from "../harness/service/app.ts";
import { createFastClock, TestClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { unzip } from "./fakes/zip.ts";
import { DingTalkWorld } from "./worlds/dingtalk.ts";
import { expectReconnect, listInbound, listTexts, openWorld, readReply, waitForText } from "./worlds/open.ts";

const open = (world: DingTalkWorld, more: Record<string, unknown> = {}, clock?: Clock) =>
  openWorld("ding", world, { more, clock });

/** Asks a question in an existing conversation. Returns its id. */
async function ask(world: DingTalkWorld, app: App, text: string, options: string[]): Promise<string> {
  const begun = () => listTexts(world).filter((one) => one === "begun").length;
  const before = begun();
  await world.say("say begun");
  await waitUntil("the first reply", () => begun() > before);
  await app.settle();
  const [{ id }] = await app.call("GET /api/messages/inbound");
  const question = await app.call("POST /api/questions", { message_id: id, text, options });
  await waitUntil("the question", () => listTexts(world).some((one) => one.startsWith(text)));
  return question.id;
}

describe("DingTalk (contract 10, decision 0023)", () => {
  it("loses no message when its stream is replaced or dropped, and answers every frame", async () => {
    await using world = new DingTalkWorld();
    await using app = await open(world);
    await waitUntil("a stream", () => world.fake.sockets.size === 1);
    world.fake.system("ping");
    world.fake.event();
    world.fake.system("disconnect");
    await waitUntil("the next socket is open before the old one ends", () => world.fake.opened === 2);
    await world.say("say replaced");
    await waitForText(world, "replaced");
    world.fake.drop();
    await world.say("say dropped");
    await waitForText(world, "dropped");
    await waitUntil("all events are acknowledged", () => world.fake.waiting.size === 0);
    await app.settle();
    expect(listTexts(world)).toEqual(["replaced", "dropped"]);
    expect(world.faults()).toEqual([]);
  });

  it("reconnects after a silence of 2.5 ping intervals [PLT-6]", async () => {
    await using world = new DingTalkWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, {}, clock);
    await expectReconnect(app, "ding", world.fake, clock);
  });

  it.each<[number, string]>([
    [401, "Unauthorized"],
    [400, "InvalidAuthentication"],
  ])(
    "replaces an expired token, for messages and files, and sends nothing twice (%i %s)",
    async (...words) => {
      await using world = new DingTalkWorld();
      world.fake.staleAs = words;
      await using app = await open(world);
      await world.say("say one");
      await waitForText(world, "one");
      await app.settle();
      const tokens = world.fake.tokens;
      world.fake.expire();
      world.fake.expiresNext = true;
      const [{ id }] = await app.call("GET /api/messages/inbound");
      const long = "sentence. ".repeat(3_000).trim();
      await app.call("POST /api/messages", { message_id: id, content: long });
      await waitUntil("the file", () => world.uploads().length === 1);
      expect(world.uploads()).toEqual([{ name: "reply.md", text: long }]);
      expect(world.fake.tokens).toBe(tokens + 2);
      expect(world.fake.sent).toHaveLength(3);
    },
  );

  it("waits for the rate limit of the app and for a failing DingTalk; fails immediately for an unknown person", async () => {
    await using world = new DingTalkWorld();
    await using app = await open(world);
    const qps = "Forbidden.AccessDenied.QpsLimitForAppkeyAndApi";
    world.fake.modes.push({ status: 403, code: qps }, { status: 503, code: "ServiceUnavailable" });
    await world.say("say later");
    await waitForText(world, "later");
    await waitUntil("the reply is sent", async () => (await readReply(app)).status === "sent");
    expect(await readReply(app)).toMatchObject({ attempt: 1 });
    world.fake.gone.add("8");
    await world.say("say nobody", { from: "8" });
    await waitUntil("the service gives the reply up", async () => {
      const { next_attempt_at, error } = await readReply(app);
      return next_attempt_at === null && error.includes("the person does not exist");
    });
  });

  it("shows progress in a card that it edits, or without a template in one message; deletes both", async () => {
    for (const card_template of ["tpl.schema", ""]) {
      await using world = new DingTalkWorld();
      await using app = await open(world, { card_template }, createFastClock(5));
      await world.say("sleep 3");
      await waitUntil("progress", () => listTexts(world).some((text) => text.startsWith("Ada works on it")));
      await waitForText(world, "slept 3");
      await waitUntil("progress is gone", () => listTexts(world).length === 1);
      await app.settle();
      expect(world.fake.sent.map(({ isCard = false }) => isCard)).toEqual([card_template !== "", false]);
      expect(world.faults()).toEqual([]);
    }
  });

  it("adds an emotion immediately and removes it with the reply; adds none without the permission", async () => {
    await using world = new DingTalkWorld();
    await using _app = await open(world);
    await world.say("sleep 2");
    await waitUntil("a sign", () => world.fake.emotionsNow.size === 1);
    await waitForText(world, "slept 2");
    await waitUntil("the sign is gone", () => world.fake.emotionsNow.size === 0);
    world.fake.isPlain = true;
    await world.say("say without it");
    await waitForText(world, "without it");
    expect(world.fake.emotions).toHaveLength(1);
  });

  it("asks with buttons when the template has enough, else with numbers", async () => {
    await using world = new DingTalkWorld();
    await using app = await open(world);
    const many = await ask(world, app, "Which?", ["a", "b", "c", "d", "e"]);
    expect(listTexts(world).at(-1)).toContain("2. b");
    expect(world.fake.sent.at(-1).isCard).toBeUndefined();
    await world.say("2");
    await waitUntil(
      "it is answered",
      async () => (await app.call(`GET /api/questions/${many}`)).answer === "b",
    );
    const few = await ask(world, app, "Go on?", ["Yes", "No"]);
    const card = world.sent().at(-1);
    if (card === undefined) throw new Error("no card");
    expect(card.buttons).toEqual(["Yes", "No"]);
    world.press(card, "No");
    const shown = () => world.sent().find(({ id }) => id === card.id)?.text;
    await waitUntil("the answer is shown", () => shown()?.endsWith("> No") === true);
    world.press(card, "Yes");
    await world.say("say after it");
    await waitForText(world, "after it");
    expect((await app.call(`GET /api/questions/${few}`)).answer).toBe("No");
    expect(shown()).toMatch(/> No$/);
  });

  it("ignores messages that it can't answer, and skips unreadable events", async () => {
    await using world = new DingTalkWorld();
    await using app = await open(world);
    world.fake.message({ msgtype: "text" });
    const outside = {
      senderId: "$:LWCP_v1:$x",
      senderStaffId: "",
      conversationId: "cidOfX==",
      senderNick: "X",
    };
    world.fake.message({
      ...outside,
      msgId: "1",
      conversationType: "1",
      msgtype: "text",
      text: { content: "say no" },
    });
    await world.say("say yes");
    await waitForText(world, "yes");
    expect(await listInbound(app)).toEqual(["say yes"]);
    expect(world.fake.opened).toBe(1);
    expect(world.fake.waiting.size).toBe(0);
  });

  it("fetches no file from a private address; the text names a file that is too large or deleted", async () => {
    await using world = new DingTalkWorld();
    await using app = await open(world);
    const bytes = new Uint8Array(1);
    const says = (words: string) =>
      waitUntil(words, async () => (await listInbound(app)).join("\n").includes(words));
    await world.say("say large", {
      from: "1",
      file: { name: "large.bin", bytes: new Uint8Array(60_000_000) },
    });
    await says("[Cannot fetch the file large.bin: it is larger than 50 MiB]");
    world.fake.fileHost = "http://127.0.0.1:9";
    await world.say("say inside", { from: "2", file: { name: "inside.bin", bytes } });
    await says("[Cannot fetch the file inside.bin: download failed: 127.0.0.1 is at 127.0.0.1");
    world.fake.fileHost = "";
    await world.say("say gone", { from: "3", file: { name: "gone.bin", bytes } });
    expect(world.faults()).toEqual([]);
  });
});

describe("files for DingTalk", () => {
  const file = (name: string) => ({ name, bytes: new TextEncoder().encode("grüße"), mime: "text/plain" });

  it("are sent unchanged when a robot may send their type, else in a zip", () => {
    expect(packForSending(file("a.PDF"))).toEqual({ file: file("a.PDF"), type: "pdf" });
    const { file: zip, type } = packForSending(file("bericht ü.txt"));
    expect([zip.name, type]).toEqual(["bericht ü.txt.zip", "zip"]);
    expect(unzip(zip.bytes)).toEqual({ name: "bericht ü.txt", text: "grüße" });
  });

  it("are in a zip that other programs can read", async () => {
    await using folder = await createTempDir();
    const { file: zip } = packForSending(file("a.txt"));
    await Deno.writeFile(`${folder.path}/a.zip`, zip.bytes);
    const script =
      `import sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); z.testzip(); print(z.read("a.txt").decode())`;
    const python = new Deno.Command("python3", { args: ["-c", script, `${folder.path}/a.zip`] });
    const { stdout, success } = await python.output().catch(() => ({
      stdout: new Uint8Array(),
      success: null,
    }));
    // Without Python, only the other test runs.
    if (success !== null) expect(new TextDecoder().decode(stdout)).toBe("grüße\n");
  });
});

describe("texts of DingTalk", () => {
  it.each([
    ["one\ntwo\n\nthree", "one  \ntwo\n\nthree"],
    ["# Head\n**bold** and *it* and ~~no~~", "### Head  \n**bold** and *it* and no"],
    ["```js\na\nb\n```\nend", "```js\na\nb\n```\nend"],
    ["[x](https://a.example/?a=1&b=2) <b>", "[x](https://a.example/?a=1&b=2) <b>"],
  ])("%s", (markdown, shown) => expect(formatWithTitle(markdown).text).toBe(shown));

  it("have the start of their first line as title", () => {
    expect(formatWithTitle("\n## **Done**: `x`\nmore").title).toBe("Done: x");
    expect(formatWithTitle("😀".repeat(100)).title).toBe("😀".repeat(20));
    expect(formatWithTitle("***").title).toBe("…");
  });

  const message = {
    msgId: "m",
    conversationType: "2",
    conversationId: "cidgroup00001==",
    senderId: "$:LWCP_v1:$1",
    senderStaffId: "",
    isInAtList: true,
  };

  it.each([
    [{ msgtype: "text", text: { content: "  ask Bo " } }, "ask Bo", []],
    [
      {
        msgtype: "richText",
        content: { richText: [{ text: "see " }, { downloadCode: "d1" }, { text: "this" }] },
      },
      "see this",
      ["d1"],
    ],
    [{ msgtype: "picture", content: { downloadCode: "d2" } }, "", ["d2"]],
    [{ msgtype: "audio", content: { downloadCode: "d3", recognition: "hello" } }, "hello", ["d3"]],
    [{ msgtype: "video", content: { downloadCode: "d4" } }, "", ["d4"]],
  ])("are parsed as the person wrote them: %j", (said, text, refs) => {
    const incoming = parseMessage({ ...message, ...said });
    expect(incoming).toMatchObject({ text, sender: { id: "$:LWCP_v1:$1" }, isMentioned: true });
    expect(incoming?.files.map(({ ref }) => ref)).toEqual(refs);
  });

  it("are ignored when they are empty", () => {
    expect(parseMessage({ ...message, msgtype: "text", text: { content: " " } })).toBeNull();
  });

  it.each([
    [{ msgtype: "location" }, "a message of the type location"],
    [{ msgtype: "unknownMsgType", content: {} }, "a message that DingTalk does not describe"],
    [{ msgtype: "interactiveCard" }, "a card"],
    [{ msgtype: "picture", content: {} }, "a picture"],
    [{ msgtype: "chatRecord", content: {} }, "a forwarded conversation"],
    [{ msgtype: "richText", content: { richText: [{ type: "emoji" }] } }, "a part of the message"],
    [{ msgtype: "richText", content: { richText: 7 } }, "a part of the message"],
    [{ msgtype: "text", text: { content: "", isReplyMsg: true } }, "the quoted message"],
  ])("say what the service cannot read (contract-3, 20.10): %j", (said, noun) => {
    expect(parseMessage({ ...message, ...said } as RobotMessage)).toMatchObject({
      text: "",
      files: [],
      unreadable: [noun],
    });
  });

  it("have several pictures, names and other texts", () => {
    const richText = [
      { atName: "Bo" },
      { text: " look" },
      { type: "picture", downloadCode: "d1" },
      { type: "picture", pictureDownloadCode: "d2" },
    ];
    const parsed = parseMessage({ ...message, msgtype: "richText", content: { richText } });
    expect(parsed).toMatchObject({ text: "@Bo look", unreadable: [] });
    expect(parsed?.files.map(({ ref }) => ref)).toEqual(["d1", "d2"]);
    const link = { title: "News", text: "today", messageUrl: "https://n.example" };
    expect(parseMessage({ ...message, msgtype: "link", content: link })?.text).toBe(
      "News\ntoday\nhttps://n.example",
    );
  });

  it.each<[object, object]>([
    [
      { repliedMsg: { msgType: "text", senderId: "$:1", content: { text: "the plan" } } },
      { excerpts: [{ kind: "quoted", author: "$:1", text: "the plan" }], files: [] },
    ],
    [
      { repliedMsg: { msgType: "picture", senderNick: "Bo", content: { downloadCode: "d1" } } },
      { excerpts: [{ kind: "quoted", author: "Bo", text: "" }], files: [{ ref: "d1", name: "image.png" }] },
    ],
    [
      {
        repliedMsg: {
          msgType: "richText",
          content: {
            richText: [{ msgType: "text", content: "see" }, { msgType: "picture", downloadCode: "d1" }],
          },
        },
      },
      { excerpts: [{ kind: "quoted", author: "", text: "see" }], files: [{ ref: "d1" }] },
    ],
    [
      { repliedMsg: { msgType: "file", content: { downloadCode: "d1", fileName: "a.pdf" } } },
      { files: [{ ref: "d1", name: "a.pdf" }], unreadable: [] },
    ],
    [{ repliedMsg: { msgType: "unknownMsgType" } }, {
      unreadable: ["a message that DingTalk does not describe"],
    }],
    [{ repliedMsg: { msgType: "text", senderId: "bot", content: { text: "mine" } } }, { excerpts: [] }],
  ])("have the message that they reply to as an excerpt (contract-3, 20.10): %j", (more, parsed) => {
    const text = { content: "summarize", isReplyMsg: true, ...more };
    expect(parseMessage({ ...message, chatbotUserId: "bot", msgtype: "text", text })).toMatchObject({
      text: "summarize",
      ...parsed,
    });
  });

  it("have a forwarded conversation as excerpts (contract-3, 20.10)", () => {
    const records = [
      { senderName: "Bo", msgType: "text", content: "one" },
      { senderId: "7", msgType: "picture", downloadCode: "d1" },
      { senderId: "7", msgType: "text", content: { text: "two" } },
    ];
    const excerpts = [
      { kind: "forwarded", author: "Bo", text: "one" },
      { kind: "forwarded", author: "7", text: "" },
      { kind: "forwarded", author: "7", text: "two" },
    ];
    for (const chatRecord of [records, JSON.stringify(records)]) {
      const parsed = parseMessage(
        { ...message, msgtype: "chatRecord", content: { chatRecord } } as RobotMessage,
      );
      expect(parsed).toMatchObject({ text: "", excerpts, unreadable: [] });
      expect(parsed?.files.map(({ ref }) => ref)).toEqual(["d1"]);
    }
    expect(parseMessage({ ...message, msgtype: "chatRecord", content: { summary: "Bo: one" } })?.excerpts)
      .toEqual([{ kind: "forwarded", author: "", text: "Bo: one" }]);
    const quoteMessage = { msgtype: "text", senderNick: "Bo", text: { content: "old" } };
    expect(parseMessage({ ...message, msgtype: "text", text: { content: "x" }, quoteMessage })?.excerpts)
      .toEqual([{ kind: "quoted", author: "Bo", text: "old" }]);
  });

  it("tell the person what the service cannot read (contract-3, 20.10)", async () => {
    await using world = new DingTalkWorld();
    await using app = await open(world);
    const direct = { conversationType: "1", conversationId: "cidOf7==", senderId: "$:7", senderStaffId: "7" };
    const replied = { msgType: "text", senderNick: "Bo", content: { text: "the plan\nand more" } };
    const text = { content: "say done", isReplyMsg: true, repliedMsg: replied };
    world.fake.message({ ...direct, msgId: "1", msgtype: "interactiveCard" });
    await waitForText(world, "Cannot read a card. Send text or a file.");
    world.fake.message({ ...direct, msgId: "2", msgtype: "text", text });
    await waitUntil("the reply", () => listTexts(world).some((one) => one.startsWith("done")));
    expect((await listInbound(app)).at(-1)).toBe("say done\n[Quoted from Bo]\n> the plan\n> and more");
  });
});
