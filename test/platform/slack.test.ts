import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/clock.ts";
import { translateMarkdown } from "../../src/platform/markdown.ts";
import { formatPlainText, SLACK_MRKDWN } from "../../src/platform/slack/format.ts";
import { SlackClient } from "../../src/platform/slack/client.ts";
import type { App } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { SlackWorld } from "./worlds/slack.ts";
import {
  buildDelivery,
  createPlatform,
  expectReconnect,
  listInbound,
  openWorld,
  waitForInbound,
  waitForState,
  waitForText,
} from "./worlds/open.ts";

const open = (world: SlackWorld, clock?: Clock) => openWorld("team", world, { clock });

const waitForAcknowledgements = ({ fake }: SlackWorld) =>
  waitUntil("no event waits", () => fake.waiting.size === 0);

/** Builds a message of the history. */
function createMissed(world: SlackWorld, number: number, more: Record<string, unknown> = {}) {
  // The service does not read messages that are older than a day.
  const ts = `${Math.floor(Date.now() / 1000)}.${String(number).padStart(6, "0")}`;
  return { channel: world.direct, ts, user: world.person, text: `say missed ${number}`, ...more };
}

const listMissed = (numbers: number[]) => numbers.map((number) => `say missed ${number}`);
const SEVEN = [1, 2, 3, 4, 5, 6, 7];

const gapOf = async (app: App) =>
  (await app.db.first<{ value: string }>("select value from setting where name = 'gap:team'"))?.value;

describe("Slack (contract 10)", () => {
  it("loses no message when its connection is refreshed or dropped", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    await waitUntil("a socket", () => world.fake.sockets.size === 1);
    world.fake.disconnect("refresh_requested");
    await waitUntil("the next socket is open before the old one ends", () => world.fake.opened === 2);
    await world.say("say refreshed");
    await waitForText(world, "refreshed");
    world.fake.disconnect("drop");
    await world.say("say dropped");
    await waitForText(world, "dropped");
    expect(world.fake.waiting.size).toBe(0);
    await app.settle();
    expect(world.sent().filter(({ text }) => text === "dropped")).toHaveLength(1);
  });

  it("reads missed messages once and in order, and reads no stored message again (contract 10.1)", async () => {
    await using world = new SlackWorld();
    await using app = await open(world);
    const first = await world.say("say first");
    await waitForText(world, "first");
    await world.say("say in a thread", { isGroup: true, isMention: true });
    await waitForText(world, "in a thread");
    await waitForAcknowledgements(world);
    const asked = world.fake.asked.length;
    const said = (number: number, more = {}) => createMissed(world, number, more);
    world.fake.history.push(
      said(0, { ts: first, text: "say first" }),
      said(0, { ts: "1600000001.000000", text: "say too old" }),
      ...SEVEN.map((number) => said(number)),
      said(8, { bot_id: "B1", text: "say a bot" }),
      said(9, { subtype: "message_changed" }),
      said(10, { channel: "-5", text: `<@${world.fake.bot}> say in the channel` }),
      said(11, { channel: "-5", text: "say no mention" }),
    );
    world.fake.historyErrors.push("ratelimited");
    world.fake.disconnect("drop");
    await waitForText(world, "in the channel");
    await waitForInbound(app, 10);
    expect((await listInbound(app)).filter((text) => /missed/.test(text))).toEqual(listMissed(SEVEN));
    expect(world.fake.asked.length).toBeGreaterThan(asked);
    // A socket that Slack replaces makes no gap.
    const after = world.fake.asked.length;
    world.fake.disconnect("refresh_requested");
    await waitUntil("the next socket", () => world.fake.opened === 3);
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
    await waitForInbound(app, 1);
    await waitForAcknowledgements(world);
    world.fake.history.push(createMissed(world, 1));
    world.fake.historyErrors.push("internal_error", "fatal_error");
    world.fake.disconnect("drop");
    await waitUntil("the service reads the message", async () => {
      clock.advance(500);
      return (await listInbound(app)).length === 2;
    });
    expect(world.fake.historyErrors).toEqual([]);
  });

  it.each([
    ["every second call is too much", Array(10).fill(["", "ratelimited"]).flat(), SEVEN],
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
      await waitForAcknowledgements(world);
      world.fake.history.push(...SEVEN.map((number) => createMissed(world, number)));
      world.fake.history.push(createMissed(world, 9, { channel: "D8", user: "8", text: "say elsewhere" }));
      world.fake.historyErrors.push(...errors);
      world.fake.disconnect("drop");
      await waitUntil("the service reads the other conversation, too", async () => {
        clock.advance(500);
        return (await listInbound(app)).includes("say elsewhere");
      });
      expect((await listInbound(app)).filter((text) => /missed/.test(text))).toEqual(listMissed(kept));
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
      const start = () => openWorld("team", world, { dataDir: folder.path, clock });
      {
        await using app = await start();
        await world.say("say first");
        await waitForInbound(app, 1);
        await waitForAcknowledgements(world);
      }
      world.fake.history.push(...SEVEN.map((number) => createMissed(world, number)));
      world.fake.historyErrors.push(...errors);
      {
        await using app = await start();
        await waitUntil("the service waits for the history", () => world.fake.asked.length === errors.length);
        // A new message is the last one now, after the gap.
        const live = createMissed(world, 8, { text: "say live", type: "message", channel_type: "im" });
        world.fake.event(live);
        await waitForInbound(app, 2);
      }
      await using app = await start();
      await waitForInbound(app, 9);
      expect(await listInbound(app)).toEqual(["say first", "say live", ...listMissed(SEVEN)]);
      await waitUntil("the gap is closed", async () => await gapOf(app) === "");
    },
  );

  it("keeps a gap open until the service has read the history of the latest gap (contract 10.1)", async () => {
    await using world = new SlackWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    const reconnects = async (asked: number) => {
      world.fake.disconnect("drop");
      await waitForState(app, "team", "down");
      clock.advance(500);
      await waitUntil("the service asks for the history", () => world.fake.asked.length === asked);
    };
    await world.say("say first");
    await waitForInbound(app, 1);
    await waitForAcknowledgements(world);
    world.fake.history.push(createMissed(world, 1));
    world.fake.historyErrors.push("ratelimited", "fatal_error");
    await reconnects(1);
    await world.say("say live");
    await waitForInbound(app, 2);
    await waitForAcknowledgements(world);
    await reconnects(2);
    // The second reader starts where the first one did, and waits for a minute.
    clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(world.fake.asked).toHaveLength(2);
    expect(await gapOf(app)).not.toBe("");
    await waitUntil("the gap is closed", async () => {
      clock.advance(1_000);
      return await gapOf(app) === "";
    });
    await waitForInbound(app, 3);
    expect(world.fake.asked).toHaveLength(3);
  });

  it("reconnects after a silence of 2.5 ping intervals [PLT-6]", async () => {
    await using world = new SlackWorld();
    const clock = new TestClock(Date.now());
    await using app = await open(world, clock);
    await expectReconnect(app, "team", world.fake, clock);
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
    expect(await listInbound(app)).toEqual([
      "say one\n[Cannot fetch the file a.txt: Slack answered no_permission: the scope files:read is missing]",
      "say two\n[Cannot fetch the file b.txt: Slack answered an address outside of Slack]",
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
    const platform = await createPlatform(world.config);
    const text = "a<b & c ".repeat(400).trim();
    const choices = [74, 73].map((length) => ({
      value: `q${length}`,
      label: `${"x".repeat(length)}🙂 more`,
    }));
    await platform.deliver(buildDelivery(`${text}\n\n\`\`\`\n${"&".repeat(900)}\n\`\`\``, { choices }));
    const [sent] = world.sent();
    expect(sent?.buttons).toEqual(["x".repeat(74), `${"x".repeat(73)}🙂`]);
    const shown = world.fake.sent[0].blocks.map((block: { text?: { text: string } }) =>
      block.text?.text ?? ""
    );
    expect(shown.join("").match(/&amp;/g)).toHaveLength(1_300);
  });

  it("counts a file as unsent when its bytes did not arrive", async () => {
    await using world = new SlackWorld();
    const platform = await createPlatform(world.config);
    world.fake.uploadModes.push("lost", 503);
    const file = buildDelivery("", { part: { text: "long", media: null, asFile: "long.md" } });
    for (let i = 0; i < 2; i++) {
      await expect(platform.deliver(file)).rejects.toMatchObject({ why: "unreachable" });
    }
    await platform.deliver(file);
    expect(world.fake.uploads).toMatchObject([{ name: "long.md", text: "long" }]);
  });
});

describe("texts of Slack", () => {
  it.each([
    ["**a *b* c** ~~d~~ `e<f`", "*a _b_ c* ~d~ `e&lt;f`"],
    ["# Head\n[x](https://a.example/?a=1&b=2)", "*Head*\n<https://a.example/?a=1&amp;b=2|x>"],
    ["```js\nif (a < b) {}\n```", "```\nif (a &lt; b) {}\n```"],
  ])("%s", (markdown, mrkdwn) => expect(translateMarkdown(markdown, SLACK_MRKDWN)).toBe(mrkdwn));

  it.each([
    ["<@U1> in <#C1|general>: <https://a.example|a>", "@U1 in #general: [a](https://a.example)"],
    ["<!here> a &lt; b &amp;amp; c", "@here a < b &amp; c"],
    [
      "see <http://example.com|example.com>, <http://a.example/x?b=1&amp;c=2|a.example/x?b=1&amp;c=2>",
      "see example.com, a.example/x?b=1&c=2",
    ],
    [
      "<http://example.com/|Example.COM> <http://xn--bcher-kva.de/gr%C3%BC%C3%9Fe|bücher.de/grüße>",
      "Example.COM bücher.de/grüße",
    ],
    [
      "<https://good.example.evil.example|https://good.example>",
      "[https://good.example](https://good.example.evil.example)",
    ],
    ["<http://a.example/B|a.example/b>", "[a.example/b](http://a.example/B)"],
    [
      "<tel:+4930123456|030 / 123 456>, <tel:110|110>, <tel:110|police>",
      "030 / 123 456, 110, [police](tel:110)",
    ],
    ["<tel:+4930123456|+49 (0)30 123456>, <tel:+4930123456|112>", "+49 (0)30 123456, [112](tel:+4930123456)"],
    ["<tel:+14155550100|(415) 555-0100>", "(415) 555-0100"],
    [
      "<mailto:Bo@a.example|bo@a.example> <mailto:bo@a.example|Bo> <mailto:bo@a.example>",
      "bo@a.example [Bo](mailto:bo@a.example) bo@a.example",
    ],
    [
      "<!date^1392734382^{date} at {time}|February 18th, 2014 at 6:39 AM PST>",
      "February 18th, 2014 at 6:39 AM PST",
    ],
    [
      "<!date^1392734382^{date}^https://a.example/d|Feb 18>; <!date^0^{time}>",
      "[Feb 18](https://a.example/d); 1970-01-01T00:00:00.000Z",
    ],
    ["<!subteam^S1|@devs> <!subteam^S2> <!subteam^S3|ops>", "@devs @S2 @ops"],
    ["<!channel> <!everyone|everyone> <!here|@here>", "@channel @everyone @here"],
    ["<@U1|bo> <@W2> <#C1|> <#C2>", "@bo @W2 #C1 #C2"],
    [
      "`curl <https://a.example/?a=1&amp;b=2>` &lt;@U1&gt; ```<http://b.example|b.example> &amp;&amp; ls &gt; x```",
      "`curl https://a.example/?a=1&b=2` <@U1> ```b.example && ls > x```",
    ],
    ["<https://a.example/|one | two &lt;3>", "[one | two <3](https://a.example/)"],
    ["a <> b &nbsp; &amp;lt;", "a <> b &nbsp; &lt;"],
  ])("%s is parsed as a person typed it", (text, plain) => expect(formatPlainText(text)).toBe(plain));

  it("come back as typed, whatever their characters are", () => {
    const escape = (text: string) =>
      text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom("<", ">", "&", "&lt;", "&amp;", "|", "@U1", "`", "```", "<!here>", "<@U1>"),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const typed = pieces.join("");
        expect(formatPlainText(escape(typed))).toBe(typed);
      }),
      { seed: 37, numRuns: 500 },
    );
  });

  it("have the addresses that Slack turned into links", () => {
    fc.assert(
      fc.property(fc.webUrl({ withQueryParameters: true }), (address) => {
        const escaped = address.replaceAll("&", "&amp;").replaceAll("|", "%7C");
        const typed = address.replaceAll("|", "%7C");
        const short = typed.replace(/^https?:\/\//, "");
        expect(formatPlainText(`<${escaped}>`)).toBe(typed);
        expect(formatPlainText(`<${escaped}|${escaped.replace(/^https?:\/\//, "")}>`)).toBe(short);
      }),
      { seed: 37, numRuns: 500 },
    );
  });
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
