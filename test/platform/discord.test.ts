import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { DiscordClient } from "../../src/platform/discord/client.ts";
import { DISCORD_MARKDOWN, formatPlainText } from "../../src/platform/discord/format.ts";
import { translateMarkdown } from "../../src/platform/markdown.ts";
import type { Delivery } from "../../src/platform/platform.ts";
import { TestClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { DiscordWorld } from "./worlds/discord.ts";
import {
  buildDelivery,
  listInbound,
  openWorld,
  readPlatformCheck,
  readReply,
  startPlatform,
  waitForInbound,
  waitForState,
  waitForText,
} from "./worlds/open.ts";

const DAY_MS = 86_400_000;

const open = (world: DiscordWorld, clock?: Clock) => openWorld("guild", world, { clock });

const buildReply = (text: string, more: Partial<Delivery> = {}) =>
  buildDelivery(text, { chat: "D7", ...more });

/** Builds a message in a channel, by default the direct chat of the person 7. */
const createMessage = (id: string, content: string, more = {}) => ({
  ...{ id, type: 0, channel_id: "D7", author: { id: "7", username: "user7" }, content },
  ...more,
});

/** Builds more messages than a page of the history has. */
const createManyMessages = (fake: DiscordWorld["fake"]) =>
  Array.from({ length: 130 }, (_, i) => createMessage(fake.id(Date.now() - 50_000 + i), `${i}`));

const listHeard = (id: string) => [{ chat: "D7", thread: "", id }];

const mention = ({ fake: { bot } }: DiscordWorld) => ({ mentions: [{ id: bot, username: "svc" }] });

describe("the gateway of Discord (contract 10)", () => {
  it("resumes its session after a drop and on request, and loses no message", async () => {
    await using world = new DiscordWorld();
    await using app = await open(world);
    const { gateway } = world.fake;
    await waitUntil("a session", () => gateway.listening === 1);
    for (const [at, how] of ([4000, "reconnect", "resumable"] as const).entries()) {
      gateway.end(how);
      await world.say(`say after ${how}`);
      await waitForText(world, `after ${how}`);
      await waitUntil(
        "it is gone on with",
        () => gateway.asked.resume === at + 1 && gateway.listening === 1,
      );
    }
    await app.settle();
    expect(gateway.asked.identify).toBe(1);
    expect(world.sent()).toHaveLength(3);
    expect(world.faults()).toEqual([]);
  });

  it("starts a new session after the old one ends, and reads the missed messages", async () => {
    await using world = new DiscordWorld();
    await using _app = await open(world);
    await world.say("say first");
    await waitForText(world, "first");
    const { gateway } = world.fake;
    gateway.end("invalid");
    world.fake.said.get("D7")?.push(createMessage(world.fake.id(), "say between"));
    await waitForText(world, "between");
    expect(gateway.asked.identify).toBe(2);
  });

  it("gets unstored messages again", async () => {
    await using world = new DiscordWorld();
    let failures = 0;
    await using there = await startPlatform(world, {
      before({ text }) {
        if (text === "two" && failures++ === 0) throw new Error("the disk is full");
      },
    });
    for (const text of ["one", "two", "three"]) await world.say(text);
    await waitUntil("all three messages", () => there.came.length === 3);
    expect(there.texts()).toEqual(["one", "two", "three"]);
    expect(world.fake.gateway.asked).toMatchObject({ identify: 1, resume: 1 });
  });

  it("survives invalid frames, and sends its key to no other host", async () => {
    await using world = new DiscordWorld();
    world.fake.gateway.elsewhere = "ws://127.0.0.1:1/";
    await using there = await startPlatform(world);
    await world.say("one");
    world.fake.gateway.event("MESSAGE_CREATE", { id: "12", channel_id: "D7", content: "by nobody" });
    world.fake.gateway.event("INTERACTION_CREATE", {
      id: "13",
      type: 3,
      channel_id: "D7",
      message: {},
      user: null,
    });
    // The bot reads the message but shows no answer.
    world.fake.press({
      ...{ id: "14", token: "t", type: 3, channel_id: "D7", user: { id: "7", username: "seven" } },
      ...{ message: { id: "9", components: [null] }, data: { custom_id: "x" } },
    }, "9");
    await world.say("two");
    await waitUntil("all readable messages", () => there.came.length === 3);
    expect(world.fake.gateway.asked).toMatchObject({ identify: 1, resume: 0 });
    world.fake.gateway.end(4000);
    await waitUntil("a new session", () => world.fake.gateway.asked.identify === 2);
    expect(world.fake.gateway.asked.resume).toBe(0);
  });

  it("sends heartbeats at Discord's interval, and reconnects without an acknowledgement [PLT-6]", async () => {
    await using world = new DiscordWorld();
    // A late acknowledgement on a busy machine would count as a missing one.
    world.fake.gateway.beatMs = 800;
    await using there = await startPlatform(world);
    const { gateway } = world.fake;
    await world.say("one");
    await waitUntil("some heartbeats", () => gateway.asked.beats >= 4);
    expect(gateway.asked).toMatchObject({ identify: 1, resume: 0 });
    gateway.isDeaf = true;
    await waitUntil("it connects again", () => gateway.asked.resume > 0);
    gateway.isDeaf = false;
    await world.say("two");
    await waitUntil("both messages", () => there.came.length === 2);
    expect(world.faults()).toEqual([]);
  });

  it("accepts events in another order, and the same event twice", async () => {
    await using world = new DiscordWorld();
    await using app = await open(world);
    await world.say("say ready");
    await waitForText(world, "ready");
    world.fake.gateway.outOfOrder([
      ["MESSAGE_CREATE", createMessage("11", "say a")],
      ["MESSAGE_CREATE", createMessage("12", "say b")],
      ["MESSAGE_CREATE", createMessage("11", "say a")],
    ]);
    await waitForInbound(app, 3);
  });
});

describe("a refused connection to Discord (contract 10.4)", () => {
  it("is reported when the bot may not read messages, and the service continues", async () => {
    await using world = new DiscordWorld();
    world.fake.gateway.isWithoutContent = true;
    await using app = await open(world);
    await waitForState(app, "guild", "refused");
    const detail = expect.stringContaining("Message Content is off");
    expect(await readPlatformCheck(app)).toMatchObject({ status: "warn", detail });
    expect(await app.call("POST /api/platforms/guild/test")).toMatchObject({ ok: false, detail });
  });

  it("starts no session after the limit of the day", async () => {
    await using world = new DiscordWorld();
    world.fake.remaining = 0;
    await using app = await open(world);
    await waitForState(app, "guild", "limited");
    expect(world.fake.gateway.asked.identify).toBe(0);
  });

  it("asks for a session after a day at most, even when Discord names a longer pause", async () => {
    await using world = new DiscordWorld();
    const clock = new TestClock(Date.now());
    Object.assign(world.fake, { remaining: 0, resetAfterMs: Date.now() });
    await using app = await open(world, clock);
    await waitForState(app, "guild", "limited");
    world.fake.remaining = 1000;
    clock.advance(DAY_MS);
    await waitUntil("it connects", () => {
      clock.advance(500);
      return world.fake.gateway.asked.identify > 0;
    });
  });
});

describe("limits of Discord (contract 10.3)", () => {
  it("keeps the rate limit of a channel before Discord reports it", async () => {
    await using world = new DiscordWorld();
    await using there = await startPlatform(world);
    for (let i = 0; i < 12; i++) await there.platform.deliver(buildReply(`${i}`, { key: `k${i}` }));
    expect(world.sent().map(({ text }) => text)).toEqual(Array.from({ length: 12 }, (_, i) => `${i}`));
    expect(world.fake.tooMany).toBe(0);
  });

  it("sends a message once when the answer is late", async () => {
    await using world = new DiscordWorld();
    await using there = await startPlatform(world);
    world.fake.modes.push("slow");
    await there.platform.deliver(buildReply("x"));
    expect(world.sent()).toHaveLength(1);
  });

  it("sends nothing during a global limit, and reports its end", async () => {
    await using world = new DiscordWorld();
    await using there = await startPlatform(world);
    world.fake.modes.push("global");
    await expect(there.platform.deliver(buildReply("x", { key: "a" }))).rejects.toMatchObject({
      why: "limited",
      scope: "platform",
      retryAfterMs: 500,
    });
    const began = performance.now();
    await there.platform.deliver(buildReply("x", { chat: "D8", key: "b" }));
    expect(performance.now() - began).toBeGreaterThan(400);
  });

  it("asks a channel again within a day, even when Discord names a longer pause", async () => {
    await using world = new DiscordWorld();
    await using there = await startPlatform(world);
    world.fake.nextResetAfter = String(Date.now() / 1000);
    await there.platform.deliver(buildReply("x", { key: "a" }));
    const { why, retryAfterMs } = await there.platform.deliver(buildReply("x", { key: "b" })).catch((error) =>
      error
    );
    expect(why).toBe("limited");
    expect(retryAfterMs).toBeGreaterThan(DAY_MS / 2);
    expect(retryAfterMs).toBeLessThanOrEqual(DAY_MS);
  });

  it("lets a reply wait for a day at most, even when the limit of its channel is longer", async () => {
    await using world = new DiscordWorld();
    await using app = await open(world);
    world.fake.nextResetAfter = String(Date.now() / 1000);
    await world.say("say first");
    await waitForText(world, "first");
    await world.say("say second");
    await app.until("message.undelivered");
    const held = await readReply(app);
    expect(held).toMatchObject({ status: "failed", attempt: 0, error: "Discord limits the bot" });
    expect(held.next_attempt_at - Date.now()).toBeGreaterThan(DAY_MS / 2);
    expect(held.next_attempt_at - Date.now()).toBeLessThanOrEqual(DAY_MS);
  });

  it.each([[500, "unreachable"], [403, "refused"], [404, "refused"]])(
    "a reply that Discord refuses with %i is %s",
    async (status, why) => {
      await using world = new DiscordWorld();
      await using there = await startPlatform(world);
      world.fake.modes.push(status);
      await expect(there.platform.deliver(buildReply("x"))).rejects.toMatchObject({ why });
    },
  );
});

describe("the history of Discord (contract 10.1)", () => {
  it("is read from the newest known message, at most a day back, in order, page by page", async () => {
    await using world = new DiscordWorld();
    const { fake } = world;
    for (const id of ["D7", "D8"]) fake.channels.set(id, { type: 1 });
    const known = fake.id(Date.now() - 60_000);
    const long = createManyMessages(fake);
    fake.said.set("D7", [
      createMessage(fake.id(Date.now() - 90_000), "before"),
      createMessage(known, "known"),
      ...long,
    ]);
    fake.said.set("D8", [
      createMessage(fake.id(Date.now() - 40_000), "a bot", { author: { id: "5", username: "x", bot: true } }),
      createMessage(fake.id(Date.now() - 40_000), "last", { channel_id: "D8" }),
    ]);
    const heard = [
      { chat: "D7", thread: "", id: known },
      { chat: "D8", thread: "", id: fake.id(Date.now() - 70_000) },
      { chat: "gone", thread: "", id: "1" },
    ];
    await using there = await startPlatform(world, { lastHeard: heard });
    await waitUntil("all messages", () => there.came.length === 132);
    expect(there.texts()).toEqual([
      "known",
      ...long.map(({ content }) => content),
      "last",
    ]);
    expect(there.came.at(-1)).toMatchObject({ chat: "D8", isDirect: true });
  });

  it("is read in channels of a server with new messages, and waits for an answer", async () => {
    await using world = new DiscordWorld();
    const { fake } = world;
    const known = fake.id(Date.now() - 60_000);
    const [before, later] = [fake.id(Date.now() - 120_000), fake.id(Date.now() - 30_000)];
    fake.said.set("55", [
      createMessage(later, `<@${fake.bot}> new here`, { channel_id: "55", ...mention(world) }),
    ]);
    fake.said.set("56", [createMessage(later, "not read", { channel_id: "56" })]);
    fake.gateway.channels = [
      { id: "54", type: 0, last_message_id: "no id" },
      { id: "55", type: 0, last_message_id: later },
      { id: "56", type: 0, last_message_id: before },
      { id: "57", type: 0, last_message_id: null },
    ];
    fake.broken = 1;
    await using there = await startPlatform(world, { lastHeard: listHeard(known) });
    await waitUntil("the message", () => there.came.length === 1);
    expect(there.came).toMatchObject([{ chat: "55", text: "new here", isMentioned: true, isDirect: false }]);
  });

  it("is read after a restart when its server was missing before (contract 10.1)", async () => {
    await using world = new DiscordWorld();
    await using folder = await createTempDir();
    const { fake } = world;
    const start = () => openWorld("guild", world, { dataDir: folder.path });
    {
      await using app = await start();
      await world.say("say first", { id: fake.id(Date.now() - 600_000) });
      await waitForInbound(app, 1);
    }
    fake.gateway.forget();
    const [missed, direct] = [fake.id(Date.now() - 300_000), fake.id(Date.now() - 60_000)];
    fake.said.set("55", [
      createMessage("no id", `<@${fake.bot}> say odd`, { channel_id: "55", ...mention(world) }),
      createMessage(missed, `<@${fake.bot}> say missed`, { channel_id: "55", ...mention(world) }),
    ]);
    fake.said.get("D7")?.push(createMessage(direct, "say direct"));
    fake.gateway.channels = [{ id: "55", type: 0, last_message_id: missed }];
    fake.gateway.isServerGone = true;
    {
      await using app = await start();
      await waitForInbound(app, 2);
    }
    fake.gateway.forget();
    fake.gateway.isServerGone = false;
    await using app = await start();
    await waitForInbound(app, 3);
    expect(await listInbound(app)).toEqual(["say first", "say direct", "say missed"]);
    const gap = () => app.db.first<{ value: string }>("select value from setting where name = 'gap:guild'");
    await waitUntil("the gap is closed", async () => (await gap())?.value === "");
    expect(world.faults()).toEqual([]);
  });

  it("waits for the pause that Discord asks for, without counting a try", async () => {
    await using world = new DiscordWorld();
    const { fake } = world;
    const clock = new TestClock(Date.now());
    fake.channels.set("D7", { type: 1 });
    const known = fake.id(Date.now() - 60_000);
    fake.said.set("D7", [createMessage(fake.id(Date.now() - 50_000), "missed")]);
    let refusals = 0;
    const then = () => {
      if (++refusals === 8) fake.breaking.delete("D7");
      return Response.json({ message: "limited", retry_after: 200, global: false }, { status: 429 });
    };
    fake.breaking.set("D7", { pages: 0, then });
    await using there = await startPlatform(world, { lastHeard: listHeard(known), clock });
    await waitUntil("the service reads the message", () => {
      clock.advance(5_000);
      return there.came.at(-1)?.text === "missed";
    });
    expect(refusals).toBe(8);
  });

  it.each([
    ["fails", () => new Response("", { status: 500 })],
    ["answers something else", () => Response.json({})],
  ])(
    "skips the rest of a channel that %s permanently, and reads other channels",
    async (_words, then) => {
      await using world = new DiscordWorld();
      const { fake } = world;
      const clock = new TestClock(Date.now());
      fake.channels.set("D7", { type: 1 });
      const known = fake.id(Date.now() - 60_000);
      const long = createManyMessages(fake);
      fake.said.set("D7", long);
      fake.breaking.set("D7", { pages: 1, then });
      await using there = await startPlatform(world, { lastHeard: listHeard(known), clock });
      await world.say("live", { from: "8" });
      await waitUntil("the new message", () => {
        clock.advance(500);
        return there.came.at(-1)?.text === "live";
      });
      expect(there.texts()).toEqual([
        ...long.slice(0, 100).map(({ content }) => content),
        "live",
      ]);
    },
  );

  it("contains no message from before the bot joined a server", async () => {
    await using world = new DiscordWorld();
    const { fake } = world;
    const known = fake.id(Date.now() - 600_000);
    await using there = await startPlatform(world, { lastHeard: listHeard(known) });
    await waitUntil("it is connected", () => fake.gateway.listening === 1);
    const [before, after] = [fake.id(Date.now() - 60_000), fake.id(Date.now() - 10_000)];
    const elsewhere = { channel_id: "65" };
    fake.said.set("65", [
      createMessage(before, "before", elsewhere),
      createMessage(after, "after", elsewhere),
    ]);
    fake.gateway.event("GUILD_CREATE", {
      id: "901",
      joined_at: new Date(Date.now() - 30_000).toISOString(),
      channels: [{ id: "65", type: 0, last_message_id: after }],
    });
    await waitUntil("the message from after the join", () => there.came.length > 0);
    expect(there.texts()).toEqual(["after"]);
  });

  it("contains no message that is older than a day", async () => {
    await using world = new DiscordWorld();
    const { fake } = world;
    fake.channels.set("D7", { type: 1 });
    const day = 24 * 60 * 60 * 1000;
    fake.said.set("D7", [
      createMessage(fake.id(Date.now() - day - 60_000), "old"),
      createMessage(fake.id(Date.now() - day + 60_000), "new"),
    ]);
    await using there = await startPlatform(world, { lastHeard: listHeard("1000") });
    await waitUntil("the new message", () => there.came.length === 1);
    await world.say("live");
    await waitUntil("the live message", () => there.came.length === 2);
    expect(there.texts()).toEqual(["new", "live"]);
  });
});

describe("messages of Discord (contract 10.1)", () => {
  it("reach the bot by a mention, a role of the bot and a reply; messages of webhooks and of Discord don't", async () => {
    await using world = new DiscordWorld();
    await using there = await startPlatform(world);
    await world.say("ready");
    const said = (more: Record<string, unknown>) =>
      world.fake.gateway.event("MESSAGE_CREATE", {
        ...createMessage(world.fake.id(), "", { channel_id: "-5", guild_id: "900" }),
        author: { id: "7", username: "u", global_name: "User" },
        ...more,
      });
    said({ content: "<@&77> by role", mention_roles: ["77"] });
    said({ content: "<@&78> other role <#12> <:wave:1>", mention_roles: ["78"] });
    said({ content: "by webhook", webhook_id: "1" });
    said({ content: "pinned", type: 6 });
    said({ content: "", message_snapshots: [{ message: { content: "forwarded" } }] });
    said({
      content: "to <@8> and <@99>",
      mentions: [{ id: "99", username: "svc" }, { id: "8", username: "Bo" }],
    });
    await waitUntil("five messages", () => there.came.length === 5);
    expect(there.came.slice(1).map(({ text, isMentioned }) => [text, isMentioned])).toEqual([
      ["by role", true],
      ["@role-78 other role #12 :wave:", false],
      ["", false],
      ["to @Bo and", true],
    ]);
    expect(there.came[3]?.excerpts).toEqual([{ kind: "forwarded", author: "", text: "forwarded" }]);
    expect(there.came[1]).toMatchObject({ sender: { id: "7", name: "User" }, chat: "-5", isDirect: false });
  });

  it("name files that are too large, deleted or on another host, which gets no key", async () => {
    await using world = new DiscordWorld();
    await using app = await open(world);
    await world.say("say ready");
    await waitForText(world, "ready");
    const files = [
      { filename: "large.bin", size: 60_000_000, url: `${world.fake.url}/attachments/a1` },
      { filename: "gone.txt", size: 1, url: `${world.fake.url}/attachments/a2` },
      { filename: "else.txt", size: 1, url: "http://127.0.0.1:1/attachments/a3" },
    ];
    const message = createMessage(world.fake.id(), "say with files", { attachments: files });
    world.fake.gateway.event("MESSAGE_CREATE", message);
    await waitForText(world, "with files");
    const words = (await listInbound(app)).join("\n");
    expect(words).toContain("large.bin: it is larger than");
    expect(words).toContain("gone.txt: Discord answered 404");
    expect(words).toContain("else.txt: Discord named an address outside of Discord");
    expect(world.faults()).toEqual([]);
  });
});

describe("replies to Discord (contract 10.3)", () => {
  it("mention no person, are one message per key, and are plain text when Markdown makes them too long", async () => {
    await using world = new DiscordWorld();
    await using there = await startPlatform(world);
    const first = buildReply("@everyone <@7>", { key: "0b7c-1" });
    expect(await there.platform.deliver(first)).toBe(await there.platform.deliver(first));
    const marks = "_".repeat(1_500);
    await there.platform.deliver(buildReply(marks, { key: "0b7c-2" }));
    expect(world.sent().map(({ text }) => text)).toEqual(["@everyone <@7>", marks]);
    expect(world.faults()).toEqual([]);
  });

  it("leave progress deleted when a person deleted it", async () => {
    await using world = new DiscordWorld();
    await using there = await startPlatform(world);
    const place = { chat: "D7", thread: "", answers: "" };
    const id = await there.platform.progress?.({ ...place, sentAs: "", text: "working" }) ?? "";
    world.fake.sent[0].deleted = true;
    expect(await there.platform.progress?.({ ...place, sentAs: id, text: "still" })).toBe(id);
    expect(await there.platform.progress?.({ ...place, sentAs: id, text: "" })).toBe(id);
  });
});

describe("texts of Discord", () => {
  it.each([
    ["**a *b* c** ~~d~~ `e_f`", "**a *b* c** ~~d~~ `e_f`"],
    ["snake_case 2*3 * 4 |x| a\\b", "snake\\_case 2\\*3 * 4 \\|x\\| a\\\\b"],
    ["# Head\n- one\n* two\n> said", "### Head\n- one\n* two\n> said"],
    [
      "https://a.example/b_c?d=e_f and [x](https://a.example/b_c)",
      "https://a.example/b_c?d=e_f and [x](https://a.example/b_c)",
    ],
    ["**not closed", "\\*\\*not closed"],
    ["```js\na_b * c\n```", "```js\na_b * c\n```"],
  ])("%s", (markdown, shown) => expect(translateMarkdown(markdown, DISCORD_MARKDOWN)).toBe(shown));

  it("are parsed as a person typed them", () => {
    const people = [{ id: "8", username: "Bo" }];
    expect(formatPlainText("<@8> <@!9> <a:party:12> <#3>", people)).toBe("@Bo @9 :party: #3");
  });
});

it("isDiscord() accepts only addresses of Discord (contract 11)", () => {
  const client = new DiscordClient("key", "", systemClock);
  for (
    const url of ["wss://gateway.discord.gg/", "https://cdn.discordapp.com/a", "https://discord.com/a"]
  ) {
    expect([url, client.isDiscord(url)]).toEqual([url, true]);
  }
  for (
    const url of [
      "wss://evil.example/",
      "https://evil.example/a",
      "ws://gateway.discord.gg/",
      "wss://discord.gg.evil.example/",
      "nothing",
    ]
  ) {
    expect([url, client.isDiscord(url)]).toEqual([url, false]);
  }
});
