import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { translateMarkdown } from "../../src/platform/markdown.ts";
import { formatPlainText, SLACK_MRKDWN } from "../../src/platform/slack/format.ts";
import { SlackClient } from "../../src/platform/slack/client.ts";
import { SLACK } from "../../src/platform/slack/manifest.ts";
import { createSlack } from "../../src/platform/slack/slack.ts";
import { buildFakeEngines } from "../harness/fakes/agents.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { SlackWorld } from "./worlds/slack.ts";
import { expectReconnect, openWorld, readPlatformCheck, readState, waitForText } from "./worlds/open.ts";

const open = (world: SlackWorld, clock?: Clock) => openWorld("team", world, { clock });

const gapOf = async (app: App) =>
  (await app.db.first<{ value: string }>("select value from setting where name = 'gap:team'"))?.value;

describe("Slack (contract 10)", () => {
  it("loses no message when its connection is refreshed or dropped", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    await waitUntil("a socket", () => world.fake.sockets.size === 1);
    world.fake.disconnect("refresh_requested");
    await waitUntil("the next one is open first", () => world.fake.opened === 2);
    await world.say("say refreshed");
    await waitForText(world, "refreshed");
    world.fake.disconnect("drop");
    await world.say("say dropped");
    await waitForText(world, "dropped");
    expect(world.fake.waiting.size).toBe(0);
    await app.settle();
    expect(world.sent().filter(({ text }) => text === "dropped")).toHaveLength(1);
  });

  it("reads missed messages once and in order, and no stored ones (contract 10.1)", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    const first = await world.say("say first");
    await waitForText(world, "first");
    await world.say("say in a thread", { isGroup: true, isMention: true });
    await waitForText(world, "in a thread");
    await waitUntil("nothing waits", () => world.fake.waiting.size === 0);
    const asked = world.fake.asked.length;
    // The service does not read messages that are older than a day.
    const seconds = Math.floor(Date.now() / 1000);
    const said = (number: number, more = {}) => ({
      ...{ channel: world.direct, ts: `${seconds}.${String(number).padStart(6, "0")}` },
      ...{ user: world.person, text: `say missed ${number}`, ...more },
    });
    world.fake.history.push(
      said(0, { ts: first, text: "say first" }),
      said(0, { ts: "1600000001.000000", text: "say too old" }),
      ...Array.from({ length: 7 }, (_, at) => said(at + 1)),
      said(8, { bot_id: "B1", text: "say a bot" }),
      said(9, { subtype: "message_changed" }),
      said(10, { channel: "-5", text: `<@${world.fake.bot}> say in the channel` }),
      said(11, { channel: "-5", text: "say no mention" }),
    );
    world.fake.historyErrors.push("ratelimited");
    world.fake.disconnect("drop");
    await waitForText(world, "in the channel");
    await waitUntil("all are stored", async () => {
      return (await app.call("GET /api/messages/inbound")).length >= 10;
    });
    const messages = await app.call("GET /api/messages/inbound");
    const heard = messages.map(({ content }: { content: string }) => content).reverse();
    expect(heard.filter((text: string) => /missed/.test(text))).toEqual(
      Array.from({ length: 7 }, (_, at) => `say missed ${at + 1}`),
    );
    expect(heard).toHaveLength(10);
    expect(world.fake.asked.length).toBeGreaterThan(asked);
    // A socket that Slack replaces makes no gap.
    const after = world.fake.asked.length;
    world.fake.disconnect("refresh_requested");
    await waitUntil("the next one", () => world.fake.opened === 3);
    await world.say("say last");
    await waitForText(world, "last");
    expect(world.fake.asked.length).toBe(after);
    expect(world.faults()).toEqual([]);
  });

  it("reads missed messages although Slack fails at first (contract 10.1)", async () => {
    await using world = new SlackWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    await world.say("say first");
    await waitUntil("it is heard", async () => (await app.call("GET /api/messages/inbound")).length === 1);
    await waitUntil("nothing waits", () => world.fake.waiting.size === 0);
    const ts = `${Math.floor(Date.now() / 1000)}.000001`;
    world.fake.history.push({ channel: world.direct, ts, user: world.person, text: "say missed" });
    world.fake.historyErrors.push("internal_error", "fatal_error");
    world.fake.disconnect("drop");
    await waitUntil("it is read", async () => {
      clock.advance(500);
      return (await app.call("GET /api/messages/inbound")).length === 2;
    });
    expect(world.fake.historyErrors).toEqual([]);
  });

  it.each([
    ["every second call is too much", Array(10).fill(["", "ratelimited"]).flat(), [1, 2, 3, 4, 5, 6, 7]],
    ["a page never comes", ["", ...Array(5).fill("ratelimited")], [5, 6, 7]],
  ])(
    "keeps the pages that it has read of a history when %s (contract 10.1)",
    async (_words, errors, kept) => {
      await using world = new SlackWorld();
      const clock = new TestClock(Date.now());
      await using app = await open(world, clock);
      // The service reads the latest conversation first.
      await world.say("say other", { from: "8" });
      await waitForText(world, "other");
      await world.say("say first");
      await waitForText(world, "first");
      const contents = async () =>
        (await app.call("GET /api/messages/inbound")).map(({ content }: { content: string }) => content);
      await waitUntil("nothing waits", () => world.fake.waiting.size === 0);
      const seconds = Math.floor(Date.now() / 1000);
      for (let i = 1; i <= 7; i++) {
        const ts = `${seconds}.${String(i).padStart(6, "0")}`;
        world.fake.history.push({ channel: world.direct, ts, user: world.person, text: `say missed ${i}` });
      }
      const later = { channel: "D8", ts: `${seconds}.000009`, user: "8", text: "say elsewhere" };
      world.fake.history.push(later);
      world.fake.historyErrors.push(...errors);
      world.fake.disconnect("drop");
      await waitUntil("the other conversation is read, too", async () => {
        clock.advance(500);
        return (await contents()).includes("say elsewhere");
      });
      expect((await contents()).filter((text: string) => /missed/.test(text)).reverse())
        .toEqual(kept.map((number) => `say missed ${number}`));
    },
  );

  it.each([
    ["its first page is not here", ["ratelimited"]],
    ["a page of it is not here", ["", "ratelimited"]],
  ])(
    "reads the messages of a gap after a restart, when %s at the stop (contract 10.1)",
    async (_words, errors) => {
      await using world = new SlackWorld();
      await using folder = await createTempDir();
      const clock = new TestClock(Date.now());
      const start = () => {
        const team = { ...world.config, worker: "Ada", allow: ["*"] } as never;
        return openApp({
          dataDir: folder.path,
          clock,
          config: { engines: buildFakeEngines(), platforms: { team } },
        });
      };
      const missed = (number: number) => {
        const ts = `${Math.floor(Date.now() / 1000)}.${String(number).padStart(6, "0")}`;
        return { channel: world.direct, ts, user: world.person, text: `say missed ${number}` };
      };
      {
        await using app = await start();
        await app.call("POST /api/workers", { name: "Ada" });
        await world.say("say first");
        await waitUntil(
          "it is heard",
          async () => (await app.call("GET /api/messages/inbound")).length === 1,
        );
        await waitUntil("nothing waits", () => world.fake.waiting.size === 0);
      }
      for (let i = 1; i <= 7; i++) world.fake.history.push(missed(i));
      world.fake.historyErrors.push(...errors);
      {
        await using app = await start();
        await waitUntil("the history waits", () => world.fake.asked.length === errors.length);
        // A new message is the last one now, after the gap.
        const live = { ...missed(8), text: "say live" };
        world.fake.event({ ...live, type: "message", channel_type: "im" });
        await waitUntil(
          "it is heard",
          async () => (await app.call("GET /api/messages/inbound")).length === 2,
        );
      }
      await using app = await start();
      await waitUntil("all is here", async () => (await app.call("GET /api/messages/inbound")).length === 9);
      const said = (await app.call("GET /api/messages/inbound")).map(({ content }: { content: string }) =>
        content
      );
      expect(said.reverse()).toEqual([
        "say first",
        "say live",
        ...Array.from({ length: 7 }, (_, at) => `say missed ${at + 1}`),
      ]);
      await waitUntil("the gap is closed", async () => await gapOf(app) === "");
    },
  );

  it("keeps a gap open until the history of the latest one is read (contract 10.1)", async () => {
    await using world = new SlackWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    const heard = (count: number) =>
      waitUntil(`${count} messages`, async () => {
        return (await app.call("GET /api/messages/inbound")).length === count;
      });
    const reconnects = async (asked: number) => {
      world.fake.disconnect("drop");
      await waitUntil("it is down", async () => await readState(app, "team") === "down");
      clock.advance(500);
      await waitUntil("the history is asked for", () => world.fake.asked.length === asked);
    };
    await world.say("say first");
    await heard(1);
    await waitUntil("nothing waits", () => world.fake.waiting.size === 0);
    const ts = `${Math.floor(Date.now() / 1000)}.000001`;
    world.fake.history.push({ channel: world.direct, ts, user: world.person, text: "say missed" });
    world.fake.historyErrors.push("ratelimited", "fatal_error");
    await reconnects(1);
    await world.say("say live");
    await heard(2);
    await waitUntil("nothing waits", () => world.fake.waiting.size === 0);
    await reconnects(2);
    // The second reader starts where the first one did, and waits for a minute.
    clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(world.fake.asked).toHaveLength(2);
    expect(await gapOf(app)).not.toBe("");
    await waitUntil("it is closed", async () => {
      clock.advance(1_000);
      return await gapOf(app) === "";
    });
    await heard(3);
    expect(world.fake.asked).toHaveLength(3);
  });

  it("reconnects after a silence of 2.5 ping intervals [PLT-6]", async () => {
    await using world = new SlackWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    await expectReconnect(app, "team", world.fake, clock);
  });

  it("reports an invalid key, and the service continues", async () => {
    await using world = new SlackWorld();
    world.fake.revoked = true;
    await using app = await open(world);
    await waitUntil("it is refused", async () => await readState(app, "team") === "refused");
    expect(await readPlatformCheck(app)).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("token_revoked"),
    });
  });

  it("names a file in the text that it may not read, and sends its key to no other host", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    world.fake.isUnscoped = true;
    await world.say("say one", { file: { name: "a.txt", bytes: new TextEncoder().encode("a") } });
    await waitForText(world, "one");
    world.fake.event({
      type: "message",
      subtype: "file_share",
      channel: "D8",
      channel_type: "im",
      user: "8",
      text: "say two",
      ts: "1.1",
      files: [{ id: "F", name: "b.txt", size: 1, url_private_download: "http://127.0.0.1:1/files/F" }],
    });
    await waitForText(world, "two");
    const said = (await app.call("GET /api/messages/inbound")).map(({ content }: { content: string }) =>
      content
    );
    expect(said).toEqual([
      "say two\n[Cannot fetch the file b.txt: Slack answered an address outside of Slack]",
      "say one\n[Cannot fetch the file a.txt: Slack answered no_permission: the scope files:read is missing]",
    ]);
  });

  it("ignores an incomplete press, and continues (contract 10.4)", async () => {
    await using world = new SlackWorld();
    await using _app = await open(world);
    world.fake.push({
      type: "interactive",
      payload: { type: "view_submission", user: { id: world.person } },
    });
    world.fake.push({ type: "interactive", payload: null });
    await world.say("say after it");
    await waitForText(world, "after it");
    expect(world.fake.waiting.size).toBe(0);
  });

  it("sends a long question with escapes, and splits no character of a label", async () => {
    await using world = new SlackWorld();
    const { app_token, bot_token, base_url } = world.config;
    const there = createSlack({ ...SLACK, name: "team", clock: systemClock }, {
      app_token,
      bot_token,
      base_url,
    });
    const text = "a<b & c ".repeat(400).trim();
    const choices = [74, 73].map((length) => ({
      value: `q${length}`,
      label: `${"x".repeat(length)}🙂 more`,
    }));
    await there.deliver({
      ...{ key: "k", chat: "D7", thread: "", answers: "" },
      ...{ part: { text: `${text}\n\n\`\`\`\n${"&".repeat(900)}\n\`\`\``, media: null }, choices },
    });
    const [sent] = world.sent();
    expect(sent?.buttons).toEqual(["x".repeat(74), `${"x".repeat(73)}🙂`]);
    const shown = world.fake.sent[0].blocks.map((block: { text?: { text: string } }) =>
      block.text?.text ?? ""
    );
    expect(shown.join("").match(/&amp;/g)).toHaveLength(1_300);
  });

  it("counts a file as unsent when its bytes did not arrive", async () => {
    await using world = new SlackWorld();
    const { app_token, bot_token, base_url } = world.config;
    const there = createSlack({ ...SLACK, name: "team", clock: systemClock }, {
      app_token,
      bot_token,
      base_url,
    });
    world.fake.uploadModes.push("lost", 503);
    const file = {
      ...{ key: "k", chat: "D7", thread: "", answers: "", choices: [] },
      part: { text: "long", media: null, asFile: "long.md" },
    };
    for (let i = 0; i < 2; i++) {
      await expect(there.deliver(file)).rejects.toMatchObject({ why: "unreachable" });
    }
    await there.deliver(file);
    expect(world.fake.uploads).toMatchObject([{ name: "long.md", text: "long" }]);
  });

  it("lets no agent mention all people", async () => {
    await using world = new SlackWorld();
    await using _app = await open(world);
    await world.say("say <!channel> & **you**");
    await waitForText(world, "&lt;!channel&gt; &amp; *you*");
    expect(world.faults()).toEqual([]);
  });
});

describe("texts of Slack", () => {
  it.each([
    ["**a *b* c** ~~d~~ `e<f`", "*a _b_ c* ~d~ `e&lt;f`"],
    ["# Head\n[x](https://a.example/?a=1&b=2)", "*Head*\n<https://a.example/?a=1&amp;b=2|x>"],
    ["```js\nif (a < b) {}\n```", "```\nif (a &lt; b) {}\n```"],
  ])("%s", (markdown, mrkdwn) => expect(translateMarkdown(markdown, SLACK_MRKDWN)).toBe(mrkdwn));

  it.each([
    ["<@U1> in <#C1|general>: <https://a.example|a>", "@U1 in #general: https://a.example"],
    ["<!here> a &lt; b &amp;amp; c", "@here a < b &amp; c"],
  ])("%s is parsed as a person typed it", (text, plain) => expect(formatPlainText(text)).toBe(plain));
});

it("the client sends its key only to hosts of Slack, and only over TLS (contract 11)", async () => {
  const client = new SlackClient("key", "");
  // The signal is aborted before the request, so no byte leaves.
  const asked = (url: string) =>
    client.download(url, AbortSignal.abort()).then(() => "sent", ({ name }: Error) => name);
  for (
    const url of [
      "https://evil.example/f",
      "https://slack.com.evil.example/f",
      "https://evilslack.com/f",
      "http://files.slack.com/f",
      "nothing",
    ]
  ) {
    expect([url, await asked(url)]).toEqual([url, "SlackError"]);
  }
  expect(await asked("https://files.slack.com/f")).toBe("DeliveryError");
});
