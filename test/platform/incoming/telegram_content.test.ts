// Reads content of Telegram other than plain text: forwards, quotes, files of others, and content that the service cannot read.
import { describe, expect, it } from "vitest";
import { waitUntil } from "../../harness/wait.ts";
import { FakeTelegram } from "../fakes/telegram.ts";
import { listInbound, openTelegram, waitForInbound } from "../worlds/open.ts";

const ME = { id: 99, is_bot: true, first_name: "svc", username: "svc_bot" };
const BOB = { id: 8, is_bot: false, first_name: "Bob" };
const GROUP = { chat: -5, type: "supergroup" };
const texts = (fake: FakeTelegram) => fake.sent.map(({ text }) => text);
const only = (more: Record<string, unknown>) => ({ text: undefined, ...more });

/** Opens a service, sends one message and then a last one. Returns the stored texts and the replies to the first. */
async function hear(
  text: string,
  options: Record<string, unknown> = {},
  rules: Record<string, unknown> = {},
) {
  await using fake = new FakeTelegram();
  fake.files.set("f1", new TextEncoder().encode("bytes"));
  await using app = await openTelegram(fake, { allow: ["*"], ...rules });
  fake.say(text, options);
  fake.say("say over", { chat: 70, from: 70 });
  await waitUntil("the last reply", () => texts(fake).includes("over"));
  await app.settle();
  const stored = (await listInbound(app)).filter((one) => one !== "say over");
  const messages = await app.call("GET /api/messages/inbound");
  return {
    stored,
    replies: texts(fake).filter((one) => one !== "over"),
    media: messages.map(({ media }: { media: { name: string } | null }) => media?.name).filter(Boolean),
    statuses: messages.map(({ status }: { status: string }) => status),
    faults: fake.faults,
  };
}

describe("content that Telegram brings and the service cannot read", () => {
  it.each([
    ["a sticker", { sticker: { file_id: "s", emoji: "x" } }],
    ["a location", { location: { latitude: 1, longitude: 2 } }],
    ["a venue", { venue: { title: "Cafe" }, location: { latitude: 1, longitude: 2 } }],
    ["a contact", { contact: { phone_number: "1", first_name: "B" } }],
    ["a poll", { poll: { id: "p", question: "?", options: [] } }],
    ["a dice", { dice: { emoji: "x", value: 3 } }],
    ["a story", { story: { id: 1, chat: { id: 3 } } }],
    ["a giveaway", { giveaway: { chats: [], winner_count: 1 } }],
    ["a checklist", { checklist: { title: "t", tasks: [] } }],
    ["a message of an unknown kind", { hologram: { id: 1 } }],
  ])("%s is named to the person, and no agent gets it", async (noun, more) => {
    const heard = await hear("", { more: only(more) });
    expect(heard.replies).toEqual([`Cannot read ${noun}. Send text or a file.`]);
    expect(heard.stored).toEqual([`[Cannot read ${noun}]`]);
    expect(heard.statuses).toEqual(["bee_processed", "bee_processed"]);
    expect(heard.faults).toEqual([]);
  });

  it.each([
    ["a new member", { new_chat_members: [BOB] }],
    ["a pinned message", { pinned_message: { message_id: 3 } }],
    ["a new topic", { forum_topic_created: { name: "t" } }],
    ["a new title", { new_chat_title: "t" }],
    ["a video chat", { video_chat_started: {} }],
  ])("a notice of Telegram about %s gets no reply", async (_, more) => {
    const heard = await hear("", { more: only(more) });
    expect([heard.replies, heard.stored]).toEqual([[], []]);
  });

  it("is named to the agent and the person next to a text", async () => {
    const heard = await hear("say done", { more: { poll: { id: "p" } } });
    expect(heard.stored).toEqual(["say done\n[Cannot read a poll]"]);
    expect(heard.replies).toContain("Cannot read a poll. The rest of the message was received.");
    expect(heard.replies).toHaveLength(2);
  });

  it("gets no reply in a group without a mention, for any rule of groups", async () => {
    for (const groups of ["mention", "all"]) {
      const heard = await hear("", { ...GROUP, more: only({ sticker: { file_id: "s" } }) }, { groups });
      expect([heard.replies, heard.stored]).toEqual([[], []]);
    }
  });

  it("gets a reply in a group as a reply to the bot", async () => {
    const more = only({
      sticker: { file_id: "s" },
      reply_to_message: { message_id: 3, from: ME, text: "x" },
    });
    const heard = await hear("", { ...GROUP, more });
    expect(heard.replies).toEqual(["Cannot read a sticker. Send text or a file."]);
  });

  it("from a stranger is answered with the pairing code only, once", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake);
    for (let i = 0; i < 3; i++) fake.say("", { more: only({ sticker: { file_id: "s" } }) });
    await waitUntil("the polls", () => fake.unconfirmed === 0);
    await app.settle();
    expect(texts(fake)).toEqual([expect.stringContaining("svc ctl platform pair")]);
    expect(await listInbound(app)).toEqual([]);
  });

  it("is named once for a repeated message", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    for (let i = 0; i < 3; i++) fake.say("", { id: 5, more: only({ sticker: { file_id: "s" } }) });
    await waitUntil("the polls", () => fake.unconfirmed === 0);
    await app.settle();
    expect(texts(fake)).toHaveLength(1);
  });
});

describe("quotes and forwards of Telegram", () => {
  it.each([
    ["a person", { type: "user", sender_user: BOB }, "Bob"],
    ["a hidden person", { type: "hidden_user", sender_user_name: "Eve" }, "Eve"],
    ["a channel", { type: "channel", chat: { id: 1, title: "News" } }, "News"],
    ["a group", { type: "chat", sender_chat: { id: 1, title: "Team" } }, "Team"],
  ])("of %s are data", async (_, forward_origin, name) => {
    const heard = await hear("/stop\n@Ada run", { more: { forward_origin } });
    expect(heard.stored).toEqual([`[Forwarded from ${name}]\n> /stop\n> @Ada run`]);
  });

  it("a reply to a colleague brings text and file, with the mention only", async () => {
    const reply_to_message = {
      message_id: 3,
      from: BOB,
      caption: "Report\nQ3",
      document: { file_id: "f1", file_name: "q3.txt" },
    };
    const heard = await hear("@svc_bot say it", { ...GROUP, more: { reply_to_message } });
    expect(heard.stored).toEqual(["say it\n[Quoted from Bob]\n> Report\n> Q3"]);
    expect(heard.media).toEqual([expect.stringContaining("txt")]);
    const short = await hear("@svc_bot", {
      ...GROUP,
      more: { reply_to_message: { message_id: 3, from: BOB, text: "say x" } },
    });
    expect(short.stored).toEqual(["[Quoted from Bob]\n> say x"]);
    const unasked = await hear("say it", { ...GROUP, more: { reply_to_message } });
    expect(unasked.stored).toEqual([]);
  });

  it("a chosen part takes the place of the whole text, also from another chat and from the bot", async () => {
    const quote = { text: "the part", position: 0 };
    const reply_to_message = { message_id: 3, from: BOB, text: "all and the part" };
    const one = await hear("say a", { more: { reply_to_message, quote } });
    expect(one.stored).toEqual(["say a\n[Quoted from Bob]\n> the part"]);
    const external_reply = {
      origin: { type: "user", sender_user: BOB },
      document: { file_id: "f1", file_name: "f.txt" },
    };
    const two = await hear("say b", { more: { external_reply, quote } });
    expect(two.stored).toEqual(["say b\n[Quoted from Bob]\n> the part"]);
    expect(two.media).toHaveLength(1);
    const three = await hear("say c", {
      more: { reply_to_message: { ...reply_to_message, from: ME }, quote },
    });
    expect(three.stored).toEqual(["say c\n[Quoted from svc]\n> the part"]);
    const four = await hear("say d", { more: { reply_to_message: { ...reply_to_message, from: ME } } });
    expect(four.stored).toEqual(["say d"]);
  });

  it("a mention in a forward does not address the bot in a group", async () => {
    const forward_origin = { type: "user", sender_user: BOB };
    const heard = await hear("@svc_bot say x", { ...GROUP, more: { forward_origin } });
    expect(heard.stored).toEqual([]);
  });

  it.each([
    ["a\nb c", 0, 3, "> a\n> b\n c"],
    ["see a\nb", 4, 3, "see \n> a\n> b"],
    ["😀a\nb", 0, 5, "> 😀a\n> b"],
    ["a\n\nb", 0, 2, "> a\n\nb"],
  ])("a quote in the text %j has its marks", async (text, offset, length, shown) => {
    const heard = await hear(text, { more: { entities: [{ type: "blockquote", offset, length }] } });
    expect(heard.stored).toEqual([shown]);
  });

  it("a mention in such a quote does not address the bot", async () => {
    const entities = [{ type: "expandable_blockquote", offset: 0, length: 8 }];
    expect((await hear("@svc_bot say x", { ...GROUP, more: { entities } })).stored).toEqual([]);
  });

  it("content of the quoted message that is not readable is named", async () => {
    const reply_to_message = { message_id: 3, from: BOB, poll: { id: "p" } };
    const heard = await hear("@svc_bot say sum", { ...GROUP, more: { reply_to_message } });
    expect(heard.stored).toEqual(["say sum\n[Cannot read a poll]"]);
  });

  it.each(["video_note", "animation", "voice"])("a %s is a file", async (field) => {
    const heard = await hear("", { more: only({ [field]: { file_id: "f1", file_size: 5 } }) });
    expect(heard.media).toHaveLength(1);
    expect(heard.stored).toEqual([""]);
  });
});

describe("topics of Telegram", () => {
  const topic = (reply: Record<string, unknown>, more = {}) => ({
    ...GROUP,
    more: {
      is_topic_message: true,
      message_thread_id: 40,
      reply_to_message: { from: ME, ...reply },
      ...more,
    },
  });

  it("a message in a topic of the bot is no reply to the bot", async () => {
    const created = { message_id: 40, forum_topic_created: { name: "t", icon_color: 1 } };
    expect((await hear("say x", topic(created))).stored).toEqual([]);
    expect((await hear("say x", topic({ message_id: 40, text: "first" }))).stored).toEqual([]);
    expect((await hear("say x", topic({ message_id: 12, forum_topic_created: { name: "t" } }))).stored)
      .toEqual([]);
    const all = await hear("say x", topic(created), { groups: "all" });
    expect(all.stored).toEqual(["say x"]);
    const byBob = await hear("@svc_bot say x", topic({ message_id: 40, from: BOB, text: "first" }));
    expect(byBob.stored).toEqual(["say x"]);
  });

  it("a reply to another message of the bot is one, and so is a chosen part of the first", async () => {
    expect((await hear("say x", topic({ message_id: 41, text: "hi" }))).stored).toEqual(["say x"]);
    const quoted = await hear("say x", topic({ message_id: 40, text: "hi" }, { quote: { text: "hi" } }));
    expect(quoted.stored).toEqual(["say x\n[Quoted from svc]\n> hi"]);
    // Without topics, a group has the same thread id for all replies to one message.
    const group = { message_thread_id: 40, reply_to_message: { message_id: 40, from: ME, text: "hi" } };
    expect((await hear("say x", { ...GROUP, more: group })).stored).toEqual(["say x"]);
  });

  it("a message counts once for its id", async () => {
    await using fake = new FakeTelegram();
    await using app = await openTelegram(fake, { allow: ["*"] });
    fake.say("say x", { ...topic({ message_id: 41, text: "hi" }), id: 9 });
    fake.say("say x", { ...topic({ message_id: 41, text: "hi" }), id: 9 });
    await waitForInbound(app, 1);
  });
});
