import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { inDialect } from "../../src/platform/markdown.ts";
import { plainText, SLACK_MRKDWN } from "../../src/platform/slack/format.ts";
import { SlackClient } from "../../src/platform/slack/client.ts";
import { createSlack } from "../../src/platform/slack/slack.ts";
import type { App } from "../harness/app.ts";
import { TestClock } from "../harness/clock.ts";
import { eventually } from "../harness/wait.ts";
import { SlackWorld } from "./worlds/slack.ts";
import { openWorld } from "./worlds/open.ts";

const open = (world: SlackWorld, clock?: Clock) =>
  openWorld("team", world, clock === undefined ? {} : { clock });

const hears = (world: SlackWorld, text: string) =>
  eventually(text, () => world.sent().some((one) => one.text === text));
const stateOf = async (app: App) => (await app.call("GET /api/platforms/team")).state;

describe("Slack (contract 10)", () => {
  it("loses nothing when its connection is refreshed or dropped", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    await eventually("a socket", () => world.fake.sockets.size === 1);
    world.fake.disconnect("refresh_requested");
    await eventually("the next one is open first", () => world.fake.opened === 2);
    await world.say("say refreshed");
    await hears(world, "refreshed");
    world.fake.disconnect("drop");
    await world.say("say dropped");
    await hears(world, "dropped");
    expect(world.fake.waiting.size).toBe(0);
    await app.settle();
    expect(world.sent().filter(({ text }) => text === "dropped")).toHaveLength(1);
  });

  it("reads what was said while there was no socket, once and in order, and nothing that it has (contract 10.1)", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    const first = await world.say("say first");
    await hears(world, "first");
    await world.say("say in a thread", { isGroup: true, isMention: true });
    await hears(world, "in a thread");
    await eventually("nothing waits", () => world.fake.waiting.size === 0);
    const asked = world.fake.asked.length;
    // What is older than a day is left.
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
    world.fake.historyLimited = 1;
    world.fake.disconnect("drop");
    await hears(world, "in the channel");
    await eventually("all are stored", async () => {
      return (await app.call("GET /api/messages/inbound")).length >= 10;
    });
    const messages = await app.call("GET /api/messages/inbound");
    const heard = messages.map(({ content }: { content: string }) => content).reverse();
    expect(heard.filter((text: string) => /missed/.test(text))).toEqual(
      Array.from({ length: 7 }, (_, at) => `say missed ${at + 1}`),
    );
    expect(heard).toHaveLength(10);
    expect(world.fake.asked.length).toBeGreaterThan(asked);
    // A socket that Slack replaces leaves no gap.
    const after = world.fake.asked.length;
    world.fake.disconnect("refresh_requested");
    await eventually("the next one", () => world.fake.opened === 3);
    await world.say("say last");
    await hears(world, "last");
    expect(world.fake.asked.length).toBe(after);
    expect(world.faults()).toEqual([]);
  });

  it("reads what was said meanwhile although Slack fails at first (contract 10.1)", async () => {
    await using world = new SlackWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    await world.say("say first");
    await eventually("it is heard", async () => (await app.call("GET /api/messages/inbound")).length === 1);
    await eventually("nothing waits", () => world.fake.waiting.size === 0);
    const ts = `${Math.floor(Date.now() / 1000)}.000001`;
    world.fake.history.push({ channel: world.direct, ts, user: world.person, text: "say missed" });
    world.fake.historyErrors.push("internal_error", "fatal_error");
    world.fake.disconnect("drop");
    await eventually("it is read", async () => {
      clock.advance(500);
      return (await app.call("GET /api/messages/inbound")).length === 2;
    });
    expect(world.fake.historyErrors).toEqual([]);
  });

  it("makes a connection anew that is silent for 2.5 times its ping (reliability PLT-6)", async () => {
    await using world = new SlackWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    await eventually("a socket", async () => await stateOf(app) === "connected");
    expect(world.fake.opened).toBe(1);
    clock.advance(25_500);
    await eventually("it is opened again", () => {
      clock.advance(200);
      return world.fake.opened === 2;
    });
    await eventually("it is well", async () => await stateOf(app) === "connected");
  });

  it("says that a key does not count, and the service goes on", async () => {
    await using world = new SlackWorld();
    world.fake.revoked = true;
    await using app = await open(world);
    await eventually("it is refused", async () => await stateOf(app) === "refused");
    const { checks } = await app.call("GET /api/system/doctor");
    expect(checks.find(({ name }: { name: string }) => name === "platforms")).toMatchObject({
      status: "warn",
      detail: expect.stringContaining("token_revoked"),
    });
  });

  it("says in the text that a file may not be read, and sends its key to no other host", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    world.fake.isUnscoped = true;
    await world.say("say one", { file: { name: "a.txt", bytes: new TextEncoder().encode("a") } });
    await hears(world, "one");
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
    await hears(world, "two");
    const said = (await app.call("GET /api/messages/inbound")).map(({ content }: { content: string }) =>
      content
    );
    expect(said).toEqual([
      "say two\n[the file b.txt is not here: Slack answered an address outside of Slack]",
      "say one\n[the file a.txt is not here: Slack answered no_permission: the scope files:read is missing]",
    ]);
  });

  it("leaves what a press does not say, and goes on (contract 10.4)", async () => {
    await using world = new SlackWorld();
    await using _app = await open(world);
    world.fake.push({
      type: "interactive",
      payload: { type: "view_submission", user: { id: world.person } },
    });
    world.fake.push({ type: "interactive", payload: null });
    await world.say("say after it");
    await hears(world, "after it");
    expect(world.fake.waiting.size).toBe(0);
  });

  it("takes a long question whose characters are escaped, and cuts no character of a label in two", async () => {
    await using world = new SlackWorld();
    const { app_token, bot_token, base_url } = world.config;
    const there = createSlack("team", { app_token, bot_token, base_url }, systemClock);
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

  it("has not sent a file whose bytes did not arrive", async () => {
    await using world = new SlackWorld();
    const { app_token, bot_token, base_url } = world.config;
    const there = createSlack("team", { app_token, bot_token, base_url }, systemClock);
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

  it("lets no agent mention everybody", async () => {
    await using world = new SlackWorld();
    await using _app = await open(world);
    await world.say("say <!channel> & **you**");
    await hears(world, "&lt;!channel&gt; &amp; *you*");
    expect(world.faults()).toEqual([]);
  });
});

describe("texts of Slack", () => {
  it.each([
    ["**a *b* c** ~~d~~ `e<f`", "*a _b_ c* ~d~ `e&lt;f`"],
    ["# Head\n[x](https://a.example/?a=1&b=2)", "*Head*\n<https://a.example/?a=1&amp;b=2|x>"],
    ["```js\nif (a < b) {}\n```", "```\nif (a &lt; b) {}\n```"],
  ])("%s", (markdown, mrkdwn) => expect(inDialect(markdown, SLACK_MRKDWN)).toBe(mrkdwn));

  it.each([
    ["<@U1> in <#C1|general>: <https://a.example|a>", "@U1 in #general: https://a.example"],
    ["<!here> a &lt; b &amp;amp; c", "@here a < b &amp; c"],
  ])("%s is read as a person typed it", (text, plain) => expect(plainText(text)).toBe(plain));
});

it("gives its key to Slack's own hosts alone, and over TLS alone (contract 11)", async () => {
  const client = new SlackClient("key", "");
  // The request is over before it begins: nothing leaves.
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
