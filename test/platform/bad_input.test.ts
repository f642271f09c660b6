// Bad input of people, programs and platforms must not stop the service, or reach other people.
import { describe, expect, it } from "vitest";
import { PlatformCooldowns } from "../../src/pipeline/delivery/platform_cooldowns.ts";
import { expand } from "../../src/domain/call/template.ts";
import type { IncomingMessage } from "../../src/platform/platform.ts";
import { parseMessage as discordMessage } from "../../src/platform/discord/message.ts";
import { parseMessage as slackMessage } from "../../src/platform/slack/message.ts";
import { parseUpdate as telegramUpdate } from "../../src/platform/telegram/message.ts";
import type { App } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { FakeTelegram } from "./fakes/telegram.ts";
import {
  listInbound,
  openPlatforms,
  openWorld,
  readPlatformCheck,
  waitForInbound,
  waitForState,
  waitForText,
} from "./worlds/open.ts";
import { Receiver, SECRET } from "./fakes/receiver.ts";
import { SlackWorld } from "./worlds/slack.ts";

const phoneOf = (fake: FakeTelegram, more: Record<string, unknown> = {}) => ({
  ...{ kind: "telegram", token: fake.token, base_url: fake.url },
  ...{ worker: "Ada", allow: ["7"], ...more },
});
const texts = (fake: FakeTelegram): string[] => fake.sent.map(({ text }) => text);
const stored = (app: App) => app.call("GET /api/messages/inbound?page_size=100");

describe("bad messages from people and programs", () => {
  it(
    "1,000 messages in a second are stored once each; one notice reports the limit, and the next message gets a reply",
    async () => {
      await using fake = new FakeTelegram();
      const config = { limits: { max_waiting_messages: 600 }, bee: { quiet_window: "2s" } };
      await using app = await openPlatforms({ phone: phoneOf(fake) }, { config });
      for (let i = 0; i < 1_000; i++) fake.say(`say number ${i}`);
      const count = () => app.db.first<{ n: number }>("select count(*) as n from inbound_message");
      await waitUntil("all are stored", async () => (await count())?.n === 1_000, 60_000);
      await app.settle(60_000);
      fake.say("say after it");
      await waitUntil("the reply to the next message", () => texts(fake).includes("after it"), 60_000);
      expect(texts(fake).filter((text) => text.startsWith("Cannot accept this message")).length).toBeLessThan(
        5,
      );
      expect(fake.faults).toEqual([]);
    },
    240_000,
  );

  it(
    "4 MB of text are cut with a note; emoji and right-to-left text arrive unchanged",
    async () => {
      await using fake = new FakeTelegram();
      await using app = await openPlatforms({ phone: phoneOf(fake) });
      fake.say(`say ok ${"ß".repeat(2_000_000)}`);
      await waitForInbound(app, 1);
      const [long] = await app.db.read<{ content: string }>("select content from inbound_message");
      expect(new TextEncoder().encode(long?.content).length).toBeLessThanOrEqual(256 * 1024);
      expect(long?.content).toMatch(/ß\n\[message truncated: it was too long\]$/);
      for (
        const [chat, text] of [[8, "👩‍🚀👨🏽‍🚒❤️‍🔥"], [9, "שלום \u202eabc\u202c مرحبا"], [10, "\u200b"]] as const
      ) {
        fake.say(text, { chat, from: 7 });
      }
      await waitUntil("they are stored", async () => (await stored(app)).length >= 3);
      expect(await listInbound(app)).toEqual(
        expect.arrayContaining(["👩‍🚀👨🏽‍🚒❤️‍🔥", "שלום \u202eabc\u202c مرحبا"]),
      );
      fake.say("say 👩‍🚀", { chat: 11, from: 7 });
      await waitUntil("the reply with the emoji", () => texts(fake).includes("👩‍🚀"), 60_000);
      expect(fake.faults).toEqual([]);
    },
    120_000,
  );

  it("a file with a wrong type gets the type of its bytes", async () => {
    await using fake = new FakeTelegram();
    await using app = await openPlatforms({ phone: phoneOf(fake) });
    fake.files.set("f1", new TextEncoder().encode("<script>alert(1)</script>"));
    fake.files.set(
      "f2",
      new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 73, 72, 68, 82]),
    );
    const document = (file_id: string, file_name: string, mime_type: string) => ({
      more: {
        text: undefined,
        caption: "say got it",
        document: { file_id, file_name, mime_type, file_size: 20 },
      },
    });
    fake.say("", document("f1", "cat.png", "image/png"));
    fake.say("", document("f2", "notes.txt", "text/plain"));
    const media = async (): Promise<{ name: string; mime: string }[]> =>
      (await stored(app)).map((one: { media: unknown }) => one.media).filter((one: unknown) => one !== null);
    await waitUntil("both files", async () => (await media()).length === 2);
    const byName = new Map((await media()).map(({ name, mime }) => [name.replace(/^.{37}/, ""), mime]));
    expect(byName.get("cat.png")).not.toMatch(/^image/);
    expect(byName.get("notes.txt")).toBe("image/png");
  });

  it("a body with too many levels for a template is refused, and the next body is accepted", async () => {
    const alerts = { kind: "webhook", worker: "Ada", template: "{{/a}}", conversation: "x" };
    await using app = await openPlatforms({ alerts });
    const deep = `{"id":1,"a":${"[".repeat(200_000)}${"]".repeat(200_000)}}`;
    const token = await app.call("POST /api/tokens", { name: "t", scopes: ["write:hooks"] });
    const post = (body: string) =>
      app.server.fetch(
        new Request("http://localhost/hooks/alerts", {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${token.token}` },
          body,
        }),
      );
    const refused = await post(deep);
    expect([refused.status, (await refused.json()).code]).toEqual([400, "invalid_request"]);
    expect((await post(`{"id":2,"a":[[1]]}`)).status).toBe(202);
    expect(expand("{{/a}}", { a: [[1]] })).toBe("[[1]]");
    // The getter makes the runtime serialize level by level, as for all objects that aren't plain.
    let nested: unknown = [];
    for (let depth = 0; depth < 100_000; depth++) nested = [nested];
    const a = {
      nested,
      get more() {
        return 1;
      },
    };
    expect(() => expand("{{/a}}", { a })).toThrow(/nested too deeply/);
  });
});

describe("bad replies of agents", () => {
  const send = (app: App, message_id: string, content: string) =>
    app.call("POST /api/messages", { message_id, content });

  it("unclosed Markdown and marks of the platform are sent as text", async () => {
    await using fake = new FakeTelegram();
    await using app = await openPlatforms({ phone: phoneOf(fake) });
    fake.say("say begun");
    await waitUntil("a reply", () => texts(fake).includes("begun"));
    const [{ id }] = await stored(app);
    const odd = [
      "**open _and `code [x](http://",
      "```js\nnever closed",
      "</b><script>&amp;",
      "*".repeat(3_000),
      "> \u202e",
    ];
    for (const text of odd) await send(app, id, text);
    await waitUntil("all arrive", () => fake.sent.length === 1 + odd.length);
    expect(texts(fake)[1]).toContain("**open _and");
    expect(texts(fake)[3]).toBe("&lt;/b&gt;&lt;script&gt;&amp;amp;");
    expect(fake.faults).toEqual([]);
  });

  it("a reply mentions no person: a mention of all is sent as text", async () => {
    await using world = new SlackWorld();
    await using app = await openWorld("team", world);
    await world.say("say begun");
    await waitForText(world, "begun");
    const [{ id }] = await stored(app);
    await send(app, id, "<!channel> <!everyone> <@U1> **<!here>** [x](https://e.org/<!here>)");
    await waitUntil("it arrives", () => world.sent().length === 2);
    const raw = world.fake.sent.at(-1)?.text as string;
    expect(raw).not.toMatch(/<!|<@/);
    expect(raw).toContain("&lt;!channel&gt;");
  });
});

it("two services with one bot token: the list and the doctor of both report it [PLT-6]", async () => {
  await using fake = new FakeTelegram();
  fake.hasRival = true;
  await using app = await openPlatforms({ phone: phoneOf(fake) });
  await waitForState(app, "phone", "refused");
  expect((await app.call("GET /api/platforms/phone")).error).toContain(
    "terminated by other getUpdates request",
  );
  expect(await readPlatformCheck(app)).toMatchObject({
    status: "warn",
    detail: expect.stringContaining("phone is refused: Conflict"),
  });
});

it(
  "a platform with a flood of messages and no answers does not slow down other platforms [PLT-3]",
  async () => {
    await using loud = new FakeTelegram();
    await using quiet = new FakeTelegram();
    await using app = await openPlatforms({ loud: phoneOf(loud, { allow: ["8"] }), quiet: phoneOf(quiet) });
    loud.hangs = true;
    for (let chat = 100; chat < 130; chat++) loud.say("say nothing", { chat, from: 8 });
    await waitUntil("replies wait", async () => {
      return (await app.call("GET /api/platforms/loud")).waiting > 16;
    }, 60_000);
    for (let i = 0; i < 1_000; i++) loud.say("let me in", { chat: -1, from: 66, type: "group" });
    for (let i = 0; i < 5; i++) {
      quiet.say(`say quiet ${i}`, { chat: 200 + i, from: 7 });
      await waitUntil("the other platform answers", () => texts(quiet).includes(`quiet ${i}`), 10_000);
    }
    expect(loud.sent).toEqual([]);
  },
  180_000,
);

/** Parsers of the platforms that name the size of a file. */
const WITH_FILE: Record<string, (size: never) => IncomingMessage | null> = {
  telegram: (file_size) =>
    telegramUpdate({
      update_id: 1,
      message: {
        message_id: 1,
        chat: { id: 7, type: "private" },
        from: { id: 7, is_bot: false },
        document: { file_id: "f", file_size },
      },
    }, { id: 99, is_bot: true }),
  discord: (size) =>
    discordMessage(
      {
        id: "1",
        type: 0,
        channel_id: "7",
        author: { id: "7", username: "u" },
        attachments: [{ url: "f", filename: "file", size }],
      },
      { chat: "7", thread: "", isDirect: true },
      { id: "99", roles: new Set() },
    ),
  slack: (size) =>
    slackMessage({
      type: "message",
      channel: "D7",
      user: "7",
      ts: "1.1",
      files: [{ id: "f", size, url_private_download: "f" }],
    }, "B"),
};

// The service reserves disk space for the sum, which must be a number.
it.each(Object.entries(WITH_FILE))(
  "a file of %s has the named size, or none for an invalid one",
  (_kind, read) => {
    const sizes = [0, 7, 1.5, "7", {}, [7], true, -1, Infinity, NaN, null, undefined];
    expect(sizes.map((size) => read(size as never)?.files)).toEqual(
      [0, 7, 1.5, ...Array(9).fill(null)].map((size) => [{ ref: "f", name: "file", size }]),
    );
  },
);

it("a cooldown keeps its length when the wall clock changes (contract 10.3) [PLT-3]", () => {
  const clock = new TestClock();
  const holds = new PlatformCooldowns(clock);
  holds.start("phone", undefined, 60_000);
  clock.jump(clock.now() - 86_400_000);
  expect(holds.findEnd("phone")).toBe(clock.now() + 60_000);
  clock.jump(clock.now() + 2 * 86_400_000);
  expect(holds.findEnd("phone")).not.toBe(null);
  clock.advance(60_000);
  expect(holds.findEnd("phone")).toBe(null);
});

it("a cooldown survives deliveries from before it, and grows until a later delivery arrives (contract 10.3) [PLT-3]", () => {
  const clock = new TestClock();
  const holds = new PlatformCooldowns(clock);
  holds.start("phone", undefined, 60_000);
  holds.start("phone", "7", 30_000);
  holds.clear("phone", "7");
  expect(holds.findEnd("phone")).toBe(clock.now() + 60_000);
  clock.advance(30_000);
  holds.clear("phone", "7");
  expect(holds.findEnd("phone", "7")).toBe(clock.now() + 30_000);
  clock.advance(30_000);
  expect(holds.findEnd("phone", "7")).toBe(null);
  // The second failure in a row has a longer cooldown.
  expect(holds.start("phone", undefined, null)).toBe(clock.now() + 2_000);
  clock.advance(2_000);
  holds.clear("phone", "7");
  expect(holds.start("phone", undefined, null)).toBe(clock.now() + 1_000);
});

it("concurrent failures share one cooldown of the longest pause, more than zero and at most a day (contract 10.3) [PLT-3]", () => {
  const clock = new TestClock();
  const holds = new PlatformCooldowns(clock);
  for (let i = 0; i < 16; i++) expect(holds.start("phone", undefined, null)).toBe(clock.now() + 1_000);
  expect(holds.start("phone", undefined, 60_000)).toBe(clock.now() + 60_000);
  expect(holds.start("phone", undefined, null)).toBe(clock.now() + 60_000);
  clock.advance(60_000);
  expect(holds.start("phone", undefined, 0)).toBe(clock.now() + 1_000);
  expect(holds.start("other", "7", -5)).toBe(clock.now() + 1_000);
  expect(holds.start("other", "8", 1_800_000_000_000)).toBe(clock.now() + 86_400_000);
});

it("a stop waits for the running delivery to a webhook, so that no event is sent twice (contract 11) [WHK-3]", async () => {
  await using receiver = new Receiver();
  await using folder = await createTempDir();
  const hook = { name: "out", url: receiver.url, secret: SECRET, allow_private: true };
  const config = { webhooks: [{ ...hook, events: ["worker.created"] }] };
  const start = () => openPlatforms({}, { dataDir: folder.path, config });
  receiver.delayMs = 700;
  {
    await using _app = await start();
    await waitUntil("the event arrives", () => receiver.got.length === 1);
  }
  await using app = await start();
  await app.call("POST /api/workers", { name: "Bob" });
  await waitUntil(
    "the event of the next start",
    () => receiver.got.some(({ body }) => JSON.stringify(body).includes("Bob")),
  );
  expect(new Set(receiver.got.map(({ id }) => id)).size).toBe(receiver.got.length);
});
