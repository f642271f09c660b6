import { describe, expect, it } from "vitest";
import { type Event, parseMessage } from "../../../src/platform/slack/message.ts";
import { waitUntil } from "../../harness/wait.ts";
import { listInbound, openWorld, startPlatform, waitForText } from "../worlds/open.ts";
import { SlackWorld } from "../worlds/slack.ts";

const BOT = "UBOT";
const place = { type: "message", channel: "D7", channel_type: "im", user: "7", ts: "1600000000.000001" };
const parse = (said: Partial<Event>) => parseMessage({ ...place, ...said }, BOT);
const rich = (
  ...elements: object[]
) => [{ type: "rich_text", elements: [{ type: "rich_text_section", elements }] }];
const address = "https://files.slack.com/f";

describe("messages of Slack (contract-3, 20.10)", () => {
  it("have forwarded and quoted messages as excerpts, with their files", () => {
    const files = [{ id: "F1", name: "plan.pdf", size: 3, url_private_download: `${address}/1` }];
    const share = {
      is_share: true,
      is_msg_unfurl: true,
      author_name: "Bo",
      from_url: "https://t.slack.com/archives/C1/p1",
      text: "see <https://a.example|here> &amp; there",
      files,
    };
    const link = {
      is_msg_unfurl: true,
      author_id: "U9",
      from_url: "https://t.slack.com/p2",
      text: "earlier",
    };
    const preview = { from_url: "https://news.example", title: "News", text: "a preview" };
    expect(parse({ text: "summarize", attachments: [share, link, preview] })).toMatchObject({
      text: "summarize",
      files: [{ ref: `${address}/1`, name: "plan.pdf", size: 3 }],
      excerpts: [
        { kind: "forwarded", author: "Bo", text: "see [here](https://a.example) & there" },
        { kind: "quoted", author: "U9", text: "earlier" },
      ],
      unreadable: [],
    });
    expect(parse({ text: "", attachments: [share] })).toMatchObject({
      text: "",
      files: [{ name: "plan.pdf" }],
    });
  });

  it.each([`<@${BOT}|`, `<@${BOT}|a b`, `<@${BOT}|<@${BOT}`])(
    "are read in linear time, although mentions have no end: %s",
    (mention) => {
      const text = mention.repeat(40_000);
      const began = performance.now();
      expect(parse({ text })?.text).toContain(BOT);
      expect(performance.now() - began).toBeLessThan(1_000);
    },
  );

  it("have the blocks, parts and messages inside of a forwarded message", () => {
    const alert = {
      is_share: true,
      author_subname: "Pager",
      text: "Alert",
      message_blocks: [{
        message: {
          blocks: [
            { type: "header", text: { type: "plain_text", text: "Disk <full>" } },
            { type: "section", fields: [{ type: "mrkdwn", text: "*Host* a &amp; b" }] },
          ],
        },
      }],
      attachments: [{
        title: "Runbook",
        title_link: "https://r.example",
        fields: [{ title: "Level", value: "3" }],
      }],
    };
    expect(parse({ text: "", attachments: [alert] })?.excerpts).toEqual([
      { kind: "forwarded", author: "Pager", text: "Disk <full>\n*Host* a & b" },
      { kind: "quoted", author: "Pager", text: "[Runbook](https://r.example)\nLevel: 3" },
    ]);
    const hidden = parse({ text: "", attachments: [{ is_share: true, text: "" }] });
    expect(hidden?.unreadable).toEqual(["a forwarded message"]);
  });

  it.each<[string, object[], string]>([
    [
      "rich text",
      rich({ type: "text", text: "a <b> " }, { type: "text", text: "c", style: { bold: true } }),
      "a <b> *c*",
    ],
    [
      "people and places",
      rich(
        { type: "user", user_id: "U2" },
        { type: "text", text: " " },
        { type: "usergroup", usergroup_id: "S1" },
        { type: "text", text: " " },
        { type: "channel", channel_id: "C1" },
        { type: "text", text: " " },
        { type: "broadcast", range: "here" },
      ),
      "@U2 @S1 #C1 @here",
    ],
    [
      "links, emoji and dates",
      rich(
        { type: "link", url: "https://a.example/?x=1&y=2" },
        { type: "link", url: "https://b.example", text: "b" },
        { type: "emoji", name: "technologist", unicode: "1f9d1-200d-1f4bb" },
        { type: "emoji", name: "parrot" },
        { type: "date", timestamp: 0, format: "{date}", fallback: "Jan 1" },
      ),
      "https://a.example/?x=1&y=2[b](https://b.example)🧑‍💻:parrot:Jan 1",
    ],
    ["lists, quotes and code", [{
      type: "rich_text",
      elements: [
        {
          type: "rich_text_list",
          style: "ordered",
          offset: 1,
          elements: [{ type: "rich_text_section", elements: [{ type: "text", text: "two" }] }],
        },
        {
          type: "rich_text_list",
          style: "bullet",
          indent: 1,
          elements: [{ type: "rich_text_section", elements: [{ type: "text", text: "in" }] }],
        },
        { type: "rich_text_quote", elements: [{ type: "text", text: "said\nso" }] },
        { type: "rich_text_preformatted", elements: [{ type: "text", text: "if (a < b) {}" }] },
      ],
    }], "2. two\n  - in\n> said\n> so\n```\nif (a < b) {}\n```"],
    ["sections", [
      { type: "section", text: { type: "mrkdwn", text: "one &lt; <https://x.example|x.example>" } },
      { type: "divider" },
      {
        type: "context",
        elements: [{ type: "plain_text", text: "<i>" }, {
          type: "image",
          alt_text: "icon",
          image_url: "https://i.example",
        }],
      },
      { type: "markdown", text: "**a** & b" },
      { type: "actions", elements: [{ type: "button" }] },
    ], "one < x.example\n---\n<i> [icon](https://i.example)\n**a** & b"],
    ["tables", [{
      type: "table",
      rows: [[{ type: "raw_text", text: "a" }, {
        type: "rich_text",
        elements: [{ type: "rich_text_section", elements: [{ type: "text", text: "b" }] }],
      }]],
    }], "| a | b |"],
  ])("have the text of their blocks without another text: %s", (_name, blocks, text) => {
    expect(parse({ text: "", blocks })).toMatchObject({ text, unreadable: [] });
    expect(parse({ text: "This content can't be displayed.", blocks })?.text).toBe(text);
  });

  it("prefer the text to blocks that repeat it, and find a mention in blocks", () => {
    const blocks = rich({ type: "user", user_id: BOT }, { type: "text", text: " hi" });
    const place = { channel: "C1", channel_type: "channel" };
    expect(parse({ text: "typed", blocks: rich({ type: "text", text: "other" }) })?.text).toBe("typed");
    expect(parse({ ...place, text: "", blocks })).toMatchObject({ text: "hi", isMentioned: true });
    expect(parse({ ...place, text: `<@${BOT}|svc> hi` })).toMatchObject({ text: "hi", isMentioned: true });
    expect(parse({ ...place, text: `<@${BOT}|svc>` })).toMatchObject({ text: "@svc", isMentioned: true });
    expect(parse({ ...place, text: `<@${BOT}>` })).toMatchObject({ text: `@${BOT}`, isMentioned: true });
  });

  it.each<[object, string]>([
    [{ id: "F1", mode: "tombstone" }, "a deleted file"],
    [{ id: "F1", mode: "hidden_by_limit" }, "a file that is older than the limit of the Slack plan"],
    [{ id: "F1", mode: "quip", title: "Plan" }, "the canvas Plan"],
    [{ id: "F1", filetype: "list", title: "Bugs" }, "the list Bugs"],
    [
      { id: "F1", mode: "external", is_external: true, name: "sheet", url_private: "https://d.example" },
      "the file sheet, which is not stored in Slack",
    ],
    [{ id: "F1", file_access: "access_denied" }, "the file, which the app cannot open"],
    [{ name: "a.txt" }, "the file a.txt"],
  ])("name a file that the service cannot fetch: %j", (file, noun) => {
    expect(parse({ text: "", files: [file] })).toMatchObject({ files: [], unreadable: [noun] });
  });

  it("have several files, one without an address", () => {
    const files = [1, 2, 3].map((at) => ({
      id: `F${at}`,
      name: `${at}.png`,
      url_private: `${address}/${at}`,
    }));
    const stub = { id: "F9", file_access: "check_file_info" };
    expect(parse({ text: "", subtype: "file_share", files: [...files, stub] })?.files).toEqual([
      ...files.map(({ name, url_private: ref }) => ({ ref, name, size: null })),
      { ref: "F9", name: "file", size: null },
    ]);
  });

  it("say what they contain in other forms", () => {
    expect(parse({ text: "waves", subtype: "me_message" })?.text).toBe("waves");
    const huddle = {
      user: "USLACKBOT",
      subtype: "huddle_thread",
      text: "A huddle started",
      room: { created_by: "8" },
    };
    expect(parse(huddle)).toMatchObject({ text: "", unreadable: ["a huddle"], sender: { id: "8" } });
    expect(parse({ text: "", blocks: [{ type: "plan" }] })?.unreadable).toEqual(["a block of the type plan"]);
    const broken = { text: "say it", attachments: [{ is_share: true, files: 7 }] } as unknown as Event;
    expect(parse(broken)).toMatchObject({ text: "say it", unreadable: ["a part of the message"] });
    expect(parse({ text: "" })).toBeNull();
  });

  it("have a limit for the number and bytes of excerpts and their files", () => {
    const shares = (count: number, more: object) =>
      Array.from({ length: count }, () => ({ is_share: true, ...more }));
    const many = parse({ text: "x", attachments: shares(80, { text: "a" }) });
    expect([many?.excerpts.length, many?.unreadable]).toEqual([50, ["the rest of the quoted messages"]]);
    const long = parse({ text: "x", attachments: shares(3, { text: "ß".repeat(20_000) }) });
    const bytes = long?.excerpts.map(({ text }) => new TextEncoder().encode(text).length) ?? [];
    expect(bytes).toEqual([40_000, 25_536, 0]);
    expect(long?.unreadable).toEqual(["the rest of the quoted messages"]);
    const files = Array.from({ length: 30 }, (_, at) => ({ id: `F${at}`, url_private: `${address}/${at}` }));
    const full = parse({
      text: "x",
      files: files.slice(0, 2),
      attachments: [{ is_share: true, text: "a", files }],
    });
    expect([full?.files.length, full?.unreadable]).toEqual([22, ["the rest of the quoted files"]]);
  });
});

describe("Slack fetches what a message only names (contract-3, 20.10)", () => {
  it("a file by its id, and says why it cannot", async () => {
    await using world = new SlackWorld();
    await using app = await openWorld("team", world);
    world.fake.files.set("F1", new TextEncoder().encode("inside"));
    const url_private_download = `${world.fake.url}/files/F1`;
    world.fake.fileInfos.set("F1", { id: "F1", name: "plan.txt", size: 6, url_private_download });
    world.fake.fileInfos.set("F2", { id: "F2", mode: "quip", title: "Plan" });
    const files = ["F1", "F2", "F3"].map((id) => ({ id, file_access: "check_file_info" }));
    world.fake.event({ ...place, text: "say got them", files });
    await waitForText(world, "got them");
    const messages = await app.call("GET /api/messages/inbound");
    expect(messages.flatMap(({ media }: { media: { name: string } | null }) => media?.name ?? [])).toEqual([
      expect.stringMatching(/plan\.txt$/),
    ]);
    expect((await listInbound(app)).join("\n")).toContain("Slack answered file_not_found");
    expect((await listInbound(app)).join("\n")).toContain("Slack answered the canvas Plan");
  });

  it("the start of a thread with the first mention, and only then", async () => {
    await using world = new SlackWorld();
    await using there = await startPlatform(world);
    const start = { channel: "C1", ts: "1600000000.000001", user: "U8", text: "the &lt;plan&gt;" };
    const thread = { thread_ts: start.ts, parent_user_id: "U8", channel: "C1", channel_type: "channel" };
    const files = [{ id: "F1", name: "a.txt", url_private: `${address}/1` }];
    world.fake.history.push({ ...start, user_profile: { display_name: "Bo" }, files });
    const say = (at: number, text: string, more = {}) =>
      world.fake.event({ ...place, ...thread, ts: `1600000000.00001${at}`, text, ...more });
    say(1, "not for the bot");
    say(2, `<@${BOT}> summarize this`);
    say(3, `<@${BOT}> again`);
    say(4, `<@${BOT}> own`, { thread_ts: "1600000000.000002", parent_user_id: BOT });
    await waitUntil("all messages", () => there.came.length === 4);
    expect(there.came.map(({ excerpts }) => excerpts)).toEqual([
      [],
      [{ kind: "quoted", author: "Bo", text: "the <plan>" }],
      [],
      [],
    ]);
    expect(there.came[1]).toMatchObject({
      text: "summarize this",
      files: [{ name: "a.txt" }],
      unreadable: [],
    });
    expect(world.fake.asked).toHaveLength(1);
    expect(world.faults()).toEqual([]);
  });

  it("the message, although the start of its thread fails or never comes", async () => {
    await using world = new SlackWorld();
    await using there = await startPlatform(world);
    const say = (at: number) =>
      world.fake.event({
        ...place,
        ...{ channel: "C1", channel_type: "channel", thread_ts: `1500000000.00000${at}` },
        ...{ ts: `1600000000.00000${at}`, text: `<@${BOT}> ask ${at}` },
      });
    world.fake.historyErrors.push("missing_scope", "ratelimited");
    say(1);
    say(2);
    await waitUntil("two messages", () => there.came.length === 2);
    world.fake.areThreadsSilent = true;
    say(3);
    await waitUntil("the third message", () => there.came.length === 3, 10_000);
    expect(there.came.map(({ text, unreadable }) => [text, unreadable])).toEqual(
      [1, 2, 3].map((at) => [`ask ${at}`, ["the start of the thread"]]),
    );
  });
});
