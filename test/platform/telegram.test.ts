import { describe, expect, it } from "vitest";
import { cutReply, cutText } from "../../src/platform/message_parts.ts";
import { translateMarkdown } from "../../src/platform/markdown.ts";
import { formatEntities, TELEGRAM_HTML } from "../../src/platform/telegram/format.ts";
import type { App } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { waitUntil } from "../harness/wait.ts";
import { FakeTelegram } from "./fakes/telegram.ts";
import { listInbound, openTelegram, openWorld, waitForInbound } from "./worlds/open.ts";
import { TelegramWorld } from "./worlds/telegram.ts";

const texts = (fake: FakeTelegram) => fake.sent.map(({ text }) => text);
const file = (file_id: string, file_size?: number) => ({
  document: { file_id, file_name: `${file_id}.bin`, ...(file_size === undefined ? {} : { file_size }) },
});
const stored = (app: App) => app.call("GET /api/messages/inbound");

describe("Telegram (contract 10)", () => {
  it("shows the result of a press: not allowed, accepted, too late", async () => {
    await using world = new TelegramWorld();
    await using app = await openWorld("phone", world, { more: { allow: ["7"] } });
    await world.say("say begun", { chat: "-5", isGroup: true, isMention: true });
    await waitUntil("the first reply", () => texts(world.fake).includes("begun"));
    const [{ id }] = await app.call("GET /api/messages/inbound");
    const options = ["Yes", "No"];
    await app.call("POST /api/questions", { message_id: id, text: "Go on?", options });
    const asked = () => world.sent().find(({ buttons }) => buttons.length === 2);
    await waitUntil("the question", () => asked() !== undefined);
    const message = asked();
    if (message === undefined) throw new Error("no question");
    for (const [label, from] of [["Yes", "66"], ["No", "7"], ["Yes", "7"]] as const) {
      const before = world.fake.confirmed.length;
      world.press(message, label, from);
      await waitUntil("it is confirmed", () => world.fake.confirmed.length > before);
      await app.settle();
    }
    expect(world.fake.confirmed.map(({ text }) => text)).toEqual([
      "You can't answer here.",
      undefined,
      "This question is closed.",
    ]);
  });

  it("ignores unpaired people: one answer, and no agent sees them [PLT-4]", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake);
    for (let i = 0; i < 3; i++) fake.say("say let me in");
    await waitUntil("an answer", () => fake.sent.length === 1);
    const [code = ""] = /[A-Z0-9]{4}-[A-Z0-9]{4}/.exec(texts(fake)[0]) ?? [];
    expect(await stored(app)).toEqual([]);
    const found = await app.call("POST /api/platforms/pair", { code });
    expect(found).toMatchObject({ platform: "phone", sender: "7", name: "User 7", paired: false });
    fake.say("say still not");
    await waitUntil("the service gets the message before the pairing", () => fake.unconfirmed === 0);
    await app.call("POST /api/platforms/pair", { code, sender: "7" });
    expect((await app.send("POST /api/platforms/pair", { code, sender: "7" })).status).toBe(404);
    fake.say("say **hello** <b>");
    await waitUntil("a reply", () => texts(fake).includes("<b>hello</b> &lt;b&gt;"));
    await app.call("DELETE /api/platforms/phone/senders/7");
    const before = (await stored(app)).length;
    fake.say("say once more");
    await waitUntil("another code", () => fake.sent.length === 3);
    expect(await stored(app)).toHaveLength(before);
    expect(fake.faults).toEqual([]);
  });

  it("answers 5 of many strangers and stores no message of them; a loop of two bots ends [PLT-4]", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["8"] });
    for (let i = 0; i < 200; i++) fake.say("say hi", { chat: 1000 + i, from: 1000 + i });
    for (let i = 0; i < 20; i++) fake.say("say hi", { chat: 8, from: 8, bot: true });
    fake.say("say done", { chat: 8, from: 8 });
    await waitUntil("the reply to the allowed person", () => texts(fake).includes("done"));
    expect(fake.sent.filter(({ text }) => text.includes("svc ctl platform pair"))).toHaveLength(5);
    expect(await stored(app)).toHaveLength(1);
  });

  it("separates equal message numbers of ten chats, stores a repeated message once, and ignores edits [PLT-5]", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    for (let chat = 1; chat <= 10; chat++) fake.say(`say ${chat}`, { chat, from: chat, id: 5 });
    for (let chat = 1; chat <= 10; chat++) fake.say(`say again ${chat}`, { chat, from: chat, id: 5 });
    fake.say("say edited", { chat: 1, from: 1, id: 5, kind: "edited_message" });
    await waitUntil("ten replies", () => fake.sent.length === 10);
    await app.settle();
    expect(texts(fake).sort()).toEqual(Array.from({ length: 10 }, (_, i) => String(i + 1)).sort());
    expect(await stored(app)).toHaveLength(10);
  });

  it("skips invalid updates, and continues", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    fake.say("say bad", { more: { chat: null } });
    fake.say("say good", { chat: 2, from: 2 });
    await waitUntil("a reply", () => texts(fake).includes("good"));
    expect(await stored(app)).toHaveLength(1);
  });

  it("stops deliveries to one limited chat only; sends a message again once after a lost answer [PLT-2, PLT-3]", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    fake.limited.add("1");
    fake.say("say one", { chat: 1, from: 1 });
    await app.until("message.undelivered");
    fake.modes.push("lost");
    fake.say("say two", { chat: 2, from: 2 });
    await waitUntil(
      "the other chat is served",
      () => texts(fake).filter((text) => text === "two").length === 2,
    );
    // The service may not have stored the resend yet.
    const failed: { session_key: string }[] = await app.call("GET /api/messages/outbound?status=failed");
    expect(failed.find((one) => one.session_key === "phone:1")).toMatchObject({
      attempt: 0,
      next_attempt_at: expect.any(Number),
    });
  });
});

describe("files of Telegram (contract 10.1)", () => {
  it("that are too large, refused or deleted are named in the text, and the message is processed", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    fake.say("say one", { chat: 1, from: 1, more: file("huge", 60_000_000) });
    fake.say("say two", { chat: 2, from: 2, more: file("gone") });
    fake.files.set("large", new Uint8Array(21_000_000));
    fake.say("say three", { chat: 3, from: 3, more: file("large") });
    await waitUntil("three replies", () => fake.sent.length === 3);
    await app.settle();
    expect((await listInbound(app)).sort()).toEqual([
      "say one\n[Cannot fetch the file huge.bin: it is larger than 50 MiB]",
      "say three\n[Cannot fetch the file large.bin: Bad Request: file is too big]",
      "say two\n[Cannot fetch the file gone.bin: Bad Request: invalid file_id]",
    ]);
  });

  it("delay the debounce window by at most 60 s if they do not arrive; the text then names them", async () => {
    await using fake = new FakeTelegram();
    const clock = new TestClock(Date.now());
    await using app = await openTelegram(fake, { allow: ["*"] }, clock);
    fake.files.set("never", "hang");
    fake.say("say late", { more: file("never") });
    await waitForInbound(app, 1);
    clock.advance(59_000);
    expect((await stored(app))[0]).toMatchObject({ status: "received", content: "say late" });
    clock.advance(1_500);
    await waitUntil("the service continues", async () => {
      clock.advance(100);
      return (await stored(app))[0].status === "bee_processed";
    });
    expect((await stored(app))[0].content).toBe(
      "say late\n[Cannot fetch the file never.bin: it did not arrive within 60 s]",
    );
  });

  it("are fetched again after a failed download", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    fake.files.set("busy", 500);
    fake.say("say got it", { more: file("busy") });
    await waitForInbound(app, 1);
    expect((await stored(app))[0].status).toBe("received");
    fake.files.set("busy", new TextEncoder().encode("bytes"));
    await waitUntil("a reply", () => texts(fake).includes("got it"));
    expect((await stored(app))[0].media).toMatchObject({ size: 5 });
  });
});

describe("code and quotes of people", () => {
  const entity = (type: string, offset: number, length: number, more = {}) => ({
    type,
    offset,
    length,
    ...more,
  });

  it.each([
    ["run npm now", [entity("code", 4, 3)], "run `npm` now"],
    ["😀 a`b", [entity("code", 3, 3)], "😀 `` a`b ``"],
    ["see one\ntwo ok", [entity("pre", 4, 7, { language: "sh" })], "see \n```sh\none\ntwo\n```\n ok"],
    ["```", [entity("pre", 0, 3)], "````\n```\n````"],
    ["one\ntwo\nthree", [entity("blockquote", 0, 7), entity("bold", 8, 5)], "> one\n> two\nthree"],
    ["one", [entity("expandable_blockquote", 0, 3), entity("code", 0, 3)], "> one"],
    ["/stop", [entity("bot_command", 0, 5)], "/stop"],
  ])("%j with %j is Markdown", (text, entities, markdown) => {
    expect(formatEntities(text, entities)).toBe(markdown);
  });

  it("route nothing, in a text and in a caption", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    await app.call("POST /api/workers", { name: "Eve" });
    fake.say("say @Eve", { chat: 1, from: 1, more: { entities: [entity("code", 4, 4)] } });
    fake.files.set("one", new TextEncoder().encode("bytes"));
    fake.say("", {
      chat: 2,
      from: 2,
      more: {
        ...file("one"),
        text: undefined,
        caption: "@Eve",
        caption_entities: [entity("blockquote", 0, 4)],
      },
    });
    fake.say("say @Eve", { chat: 3, from: 3 });
    await waitForInbound(app, 3);
    await app.settle();
    const tasks = await app.db.read<{ name: string; instruction: string }>(
      "select worker.name, instruction from task join worker on worker.id = worker_id",
    );
    expect(tasks.filter(({ name }) => name === "Eve").map(({ instruction }) => instruction)).toEqual([
      "say @Eve",
    ]);
  });
});

it("/Stop and /STOP@svc_bot are commands, and those for another bot of a group are ignored", async () => {
  await using fake = new FakeTelegram();
  await using app = await openTelegram(fake, { allow: ["*"], groups: "all" });
  fake.say("/Start hello", { chat: 1, from: 1 });
  fake.say("/WORKERS@SVC_bot", { chat: -2, from: 2, type: "group" });
  fake.say("/Workers@other_bot", { chat: -3, from: 3, type: "group" });
  fake.say("/Workers", { chat: -4, from: 4, type: "group" });
  await waitUntil("three replies", () => fake.sent.length >= 3);
  await app.settle();
  expect(fake.sent.map(({ chat_id }) => String(chat_id)).sort()).toEqual(["-2", "-4", "1"]);
  expect(await app.db.read("select id from task")).toEqual([]);
});

describe("texts for Telegram", () => {
  it("are cut below the limit at a paragraph, and a code block is closed and opened again", () => {
    const code = Array.from({ length: 400 }, (_, i) => `line ${i} of the code`).join("\n");
    const parts = cutText(`Intro\n\n\`\`\`ts\n${code}\n\`\`\`\n\nEnd`, 3_600);
    expect(parts.length).toBeGreaterThan(1);
    for (const text of parts) {
      expect(text.length).toBeLessThanOrEqual(3_600);
      expect(text.match(/^```/gm)?.length ?? 0).toBe(2 * Math.ceil((text.match(/^```/gm)?.length ?? 0) / 2));
    }
    expect(parts.join("\n").match(/line \d+ of/g)).toHaveLength(400);
  });

  it.each([
    ["a < b & c", "a &lt; b &amp; c"],
    ["**bold** and *it* and `a<b`", "<b>bold</b> and <i>it</i> and <code>a&lt;b</code>"],
    ["**not closed and `neither", "**not closed and `neither"],
    [
      "# Head\n[x](https://a.example/?a=1&b=2)",
      '<b>Head</b>\n<a href="https://a.example/?a=1&amp;b=2">x</a>',
    ],
    ["```js\nif (a < b) {}\n```", "<pre>if (a &lt; b) {}</pre>"],
    ["[x](javascript:alert)", "[x](javascript:alert)"],
    ["**a *b* c**", "<b>a <i>b</i> c</b>"],
  ])("%s", (markdown, html) => expect(translateMarkdown(markdown, TELEGRAM_HTML)).toBe(html));

  it("become a file above four parts; on a platform without files, the service drops the rest", () => {
    const long = Array.from({ length: 5_000 }, (_, i) => `sentence ${i}.`).join(" ");
    const [beginning, file, ...more] = cutReply(long, null, { characters: 1_000, fileBytes: 1_000_000 });
    expect(more).toEqual([]);
    expect(beginning?.text).toMatch(/^sentence 0\.[^]*\[continued in the file reply\.md\]$/);
    expect(file).toEqual({ text: long, media: null, asFile: "reply.md" });
    const cut = cutReply(long, null, { characters: 1_000, fileBytes: 0 });
    expect(cut).toHaveLength(5);
    expect(cut.at(-1)?.text).toMatch(/the rest is too long/);
    expect(cutReply("short", null, { characters: 1_000, fileBytes: 0 })).toEqual([{
      text: "short",
      media: null,
    }]);
  });

  it("are cut within an endless line, and never inside a character", () => {
    for (const text of ["😀".repeat(5_000), `\`\`\`${"x".repeat(9_000)}\n`, "א".repeat(9_000)]) {
      const pieces = cutText(text, 1_000);
      expect(pieces.length).toBeGreaterThan(4);
      for (const piece of pieces) {
        expect(piece.length).toBeLessThanOrEqual(1_000);
        expect(piece.isWellFormed()).toBe(true);
      }
    }
  });
});
