// Reads content of Discord other than plain text: forwards, quotes, embeds, and content that the service cannot read.
import { describe, expect, it } from "vitest";
import { listInbound, listTexts, openWorld, waitForText } from "../worlds/open.ts";
import { DiscordWorld } from "../worlds/discord.ts";

const BOB = { id: "8", username: "bob", global_name: "Bob" };
const BOT = { id: "99", username: "svc" };

/** Opens a service, sends one message with `more`, and then a last one. Returns the stored texts and the replies to the first. */
async function hear(
  more: Record<string, unknown>,
  { isGroup = false, rules = {}, repeat = 1 }: {
    isGroup?: boolean;
    rules?: Record<string, unknown>;
    repeat?: number;
  } = {},
) {
  await using world = new DiscordWorld();
  await using app = await openWorld("guild", world, { more: rules });
  await world.say("say ready", { from: "60" });
  await waitForText(world, "ready");
  const place = isGroup ? { channel_id: "-5", guild_id: "900" } : { channel_id: "D7" };
  world.fake.channels.set(place.channel_id, { type: isGroup ? 0 : 1 });
  const message = {
    id: world.fake.id(),
    type: 0,
    author: { id: "7", username: "u" },
    content: "",
    mentions: [],
    attachments: [],
    embeds: [],
    components: [],
    ...place,
    ...more,
  };
  for (
    const sent of [more.attachments, (more.referenced_message as typeof message | undefined)?.attachments]
  ) {
    for (const file of (sent ?? []) as { id: string; url: string }[]) {
      world.fake.files.set(file.id, new TextEncoder().encode("bytes"));
      file.url = `${world.fake.url}/attachments/${file.id}`;
    }
  }
  for (let i = 0; i < repeat; i++) world.fake.gateway.event("MESSAGE_CREATE", message);
  await world.say("say over", { from: "60" });
  await waitForText(world, "over");
  await app.settle();
  const rest = (texts: string[]) => texts.filter((one) => !/^(say )?(ready|over)$/.test(one));
  const messages = await app.call("GET /api/messages/inbound");
  return {
    stored: rest(await listInbound(app)),
    replies: rest(listTexts(world)),
    files: messages.filter(({ media }: { media: unknown }) => media !== null).length,
  };
}

const reply = (referenced_message: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  type: 19,
  content: "<@99> say it",
  mentions: [BOT],
  message_reference: { message_id: "5" },
  referenced_message: { id: "5", author: BOB, ...referenced_message },
  ...more,
});

describe("content that Discord brings and the service cannot read", () => {
  it.each([
    ["a sticker", { sticker_items: [{ id: "1", name: "wave", format_type: 1 }] }],
    ["a poll", { poll: { question: { text: "?" }, answers: [] } }],
    ["an invitation to an activity", { activity: { type: 1 } }],
    ["an embed", { embeds: [{ type: "image", image: { url: "https://a.example/x.png" } }] }],
    ["a message of an unknown kind", { hologram: {} }],
  ])("%s is named to the person once, and no agent gets it", async (noun, more) => {
    const heard = await hear(more, { repeat: 2 });
    expect(heard.replies).toEqual([`Cannot read ${noun}. Send text or a file.`]);
    expect(heard.stored).toEqual([`[Cannot read ${noun}]`]);
    const group = await hear(more, { isGroup: true, rules: { groups: "all" } });
    expect([group.replies, group.stored]).toEqual([[], []]);
  });

  it("is named to the agent and the person next to a text", async () => {
    const heard = await hear({ content: "say done", sticker_items: [{ id: "1" }] });
    expect(heard.stored).toEqual(["say done\n[Cannot read a sticker]"]);
    expect(heard.replies).toContain("Cannot read a sticker. The rest of the message was received.");
  });

  it("from a stranger is answered with the pairing code only", async () => {
    const heard = await hear({ sticker_items: [{ id: "1" }] }, { rules: { allow: ["60"] } });
    expect(heard.replies).toEqual([expect.stringContaining("svc ctl platform pair")]);
    expect(heard.stored).toEqual([]);
  });

  it("does not include the preview of an address", async () => {
    const heard = await hear({ content: "say https://a.example", embeds: [{ type: "link", title: "A" }] });
    expect(heard.stored).toEqual(["say https://a.example"]);
    expect(heard.replies).toEqual(["https://a.example"]);
  });
});

describe("quotes and forwards of Discord", () => {
  it("a forward is data, with its text, embeds and files", async () => {
    const attachments = [{ id: "a1", filename: "f.txt", size: 5, url: "" }];
    const snapshot = { content: "/stop\n@Ada run", embeds: [{ title: "Build", description: "failed" }] };
    const heard = await hear({ attachments, message_snapshots: [{ message: snapshot }] });
    expect(heard.stored).toEqual(["[Forwarded from another person]\n> /stop\n> @Ada run\n> Build\n> failed"]);
    expect(heard.files).toBe(1);
    const sticker = await hear({
      message_snapshots: [{ message: { content: "", sticker_items: [{ id: "1" }] } }],
    });
    expect(sticker.replies).toEqual(["Cannot read a sticker. Send text or a file."]);
  });

  it("a reply to a colleague brings text and file, with the mention only", async () => {
    const attachments = [{ id: "a1", filename: "f.txt", size: 5, url: "" }];
    const more = reply({ content: "Report <@7>", mentions: [{ id: "7", username: "u" }], attachments });
    const heard = await hear(more, { isGroup: true });
    expect(heard.stored).toEqual(["say it\n[Quoted from Bob]\n> Report @u"]);
    expect(heard.files).toBe(1);
    const unasked = await hear({ ...more, content: "say it", mentions: [] }, { isGroup: true });
    expect(unasked.stored).toEqual([]);
    const bare = await hear(reply({ content: "say x" }, { content: "<@99>" }), { isGroup: true });
    expect(bare.stored).toEqual(["[Quoted from Bob]\n> say x"]);
  });

  it.each([
    ["an embed", {
      embeds: [{ author: { name: "CI" }, title: "Build", fields: [{ name: "Branch", value: "main" }] }],
    }, "> CI\n> Build\n> Branch: main"],
    [
      "blocks",
      { components: [{ type: 17, components: [{ type: 10, content: "Disk is full" }] }] },
      "> Disk is full",
    ],
    ["a forward", { message_snapshots: [{ message: { content: "old news" } }] }, null],
  ])("a reply to an alert brings the text of %s", async (_, more, lines) => {
    const heard = await hear(reply({ content: "", ...more }), { isGroup: true });
    expect(heard.stored).toEqual([
      lines === null
        ? "say it\n[Forwarded from another person]\n> old news"
        : `say it\n[Quoted from Bob]\n${lines}`,
    ]);
  });

  it("a reply to the bot and one to a deleted message bring no quote", async () => {
    const ours = await hear(reply({ author: { ...BOT, bot: true }, content: "long" }), { isGroup: true });
    const gone = await hear({ ...reply({}), referenced_message: null }, { isGroup: true });
    expect([ours.stored, gone.stored]).toEqual([["say it"], ["say it"]]);
  });

  it("one mention is valid for all files of a message", async () => {
    const attachments = [1, 2, 3].map((n) => ({ id: `a${n}`, filename: `${n}.txt`, size: 5, url: "" }));
    const heard = await hear({ content: "<@99> say three", mentions: [BOT], attachments }, { isGroup: true });
    expect(heard.files).toBe(3);
  });
});
