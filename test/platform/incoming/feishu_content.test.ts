import { describe, expect, it } from "vitest";
import { type FeishuEvent, parseEvent } from "../../../src/platform/feishu/message.ts";
import { waitUntil } from "../../harness/wait.ts";
import { openWorld, startPlatform, waitForText } from "../worlds/open.ts";
import { FeishuWorld } from "../worlds/feishu.ts";

const BOT = "ou_bot";
const sender = { sender_id: { open_id: "ou_1" }, sender_type: "user" };

function buildEvent(message_type: string, content: unknown, more = {}): FeishuEvent {
  const place = { message_id: "om_1", chat_id: "oc_1", chat_type: "p2p" };
  const message = { ...place, message_type, content: JSON.stringify(content), ...more };
  return {
    header: { event_id: "e", event_type: "im.message.receive_v1" },
    event: { sender, message },
  } as FeishuEvent;
}

const parse = (type: string, content: unknown, more = {}) => parseEvent(buildEvent(type, content, more), BOT);

describe("messages of Feishu (contract-3, 20.10)", () => {
  it.each<[string, object, string]>([
    ["post", { zh_cn: { title: "标题", content: [[{ tag: "text", text: "你好" }]] } }, "标题\n你好"],
    ["post", {
      post: {
        en_us: { content: [[{ tag: "md", text: "**a**" }], [{ tag: "emotion", emoji_type: "SMILE" }]] },
      },
    }, "**a**\n[SMILE]"],
    ["post", {
      title: "",
      content: [[{ tag: "at", user_id: "ou_9", user_name: "Bo" }, { tag: "text", text: " go" }]],
    }, "@Bo go"],
    ["location", { name: "Office", longitude: "8.5", latitude: "47.4" }, "Location: Office (47.4, 8.5)"],
    [
      "share_calendar_event",
      { summary: "Review", start_time: "0", end_time: "3600000" },
      "Event: Review (1970-01-01T00:00:00.000Z to 1970-01-01T01:00:00.000Z)",
    ],
    ["general_calendar", { summary: "Day", start_time: "", end_time: "" }, "Event: Day"],
    ["video_chat", { topic: "Standup", start_time: "0" }, "Video call: Standup (1970-01-01T00:00:00.000Z)"],
    ["todo", {
      task_id: "t",
      summary: { title: "", content: [[{ tag: "text", text: "buy milk" }]] },
      due_time: "0",
    }, "Task: buy milk (due 1970-01-01T00:00:00.000Z)"],
    ["vote", { topic: "Lunch?", options: ["Soup", "Rice"] }, "Vote: Lunch?\n- Soup\n- Rice"],
    ["system", {
      template: "{from_user} invited {to_chatters} to this chat.",
      from_user: ["Bo"],
      to_chatters: ["Al", "Cy"],
    }, "Bo invited Al, Cy to this chat."],
    ["interactive", {
      title: "Alert",
      elements: [[{ tag: "text", text: "Disk " }, { tag: "a", href: "https://a.example", text: "full" }], [{
        tag: "button",
        text: "Ack",
      }], [{ tag: "hr" }]],
    }, "Alert\nDisk full (https://a.example)\n---"],
    ["interactive", {
      header: { title: { tag: "plain_text", content: "Deploy" } },
      elements: [
        { tag: "div", text: { tag: "lark_md", content: "**done**" }, fields: [{ text: { content: "a" } }] },
        { tag: "column_set", columns: [{ elements: [{ tag: "markdown", content: "b" }] }] },
        { tag: "action", actions: [{ tag: "button", text: { content: "x" } }] },
      ],
    }, "Deploy\n**done**\na\nb"],
    ["interactive", { schema: "2.0", body: { elements: [{ tag: "markdown", content: "new" }] } }, "new"],
    ["interactive", { i18n_elements: { en_us: [{ tag: "markdown", content: "hi" }] } }, "hi"],
  ])("have a text: %s %j", (type, content, text) => {
    expect(parse(type, content)).toMatchObject({ text, unreadable: [] });
  });

  it.each<[string, unknown, string]>([
    ["sticker", { file_key: "f" }, "a sticker"],
    ["share_chat", { chat_id: "oc_2" }, "a shared group"],
    ["share_user", { user_id: "ou_2" }, "a shared contact"],
    ["folder", { file_key: "f", file_name: "x" }, "a folder"],
    ["hongbao", { text: "[红包]" }, "a red packet"],
    ["location", {}, "a location"],
    ["image", {}, "a picture"],
    ["interactive", {
      title: null,
      elements: [[{ tag: "text", text: "请升级至最新版本客户端，以查看内容" }]],
    }, "a card"],
    ["interactive", { type: "template", data: { template_id: "t" } }, "a card"],
    ["interactive", { elements: [[{ tag: "img", image_key: "i" }]] }, "a picture in a card"],
    ["merge_forward", { content: "Merged and Forwarded Message" }, "a forwarded conversation"],
    ["post", { content: [7] }, "a part of the message"],
    ["hologram", "no object", "a message of the type hologram"],
  ])("say what the service cannot read: %s %j", (type, content, noun) => {
    expect(parse(type, content)).toMatchObject({ text: "", files: [], unreadable: [noun] });
  });

  it("have several pictures and videos", () => {
    const line = [1, 2].map((at) => ({ tag: "img", image_key: `i${at}` }));
    const content = {
      zh_cn: { content: [line, [{ tag: "media", file_key: "v" }], [{ tag: "text", text: "look" }]] },
    };
    expect(parse("post", content)).toMatchObject({
      text: "look",
      files: [
        { ref: "om_1/resources/i1?type=image" },
        { ref: "om_1/resources/i2?type=image" },
        { ref: "om_1/resources/v?type=file", name: "video.mp4" },
      ],
    });
  });
});

/** Builds a message that the service requests. */
function buildItem(message_id: string, msg_type: string, content: unknown, more = {}) {
  const from = { id: "ou_2", id_type: "open_id", sender_type: "user" };
  return { message_id, msg_type, sender: from, body: { content: JSON.stringify(content) }, ...more };
}

const send = (world: FeishuWorld, message_id: string, type: string, content: unknown, more = {}) => {
  const { event } = buildEvent(type, content, { message_id, ...more });
  world.fake.said.set(message_id, { chat: "oc_1", thread: "" });
  world.fake.event("im.message.receive_v1", event);
};

describe("Feishu's quoted and forwarded messages (contract-3, 20.10)", () => {
  it("are excerpts with their files, in a conversation inside of a conversation, too", async () => {
    await using world = new FeishuWorld();
    await using there = await startPlatform(world);
    world.fake.items.set("om_1", [
      buildItem("om_1", "merge_forward", {}),
      buildItem("om_2", "text", { text: "hi @_user_1" }, {
        upper_message_id: "om_1",
        mentions: [{ key: "@_user_1", id: "ou_3", id_type: "open_id", name: "Cy" }],
      }),
      buildItem("om_3", "merge_forward", {}, { upper_message_id: "om_1" }),
      buildItem("om_4", "file", { file_key: "f4", file_name: "plan.txt" }, { upper_message_id: "om_3" }),
      buildItem("om_5", "sticker", { file_key: "s" }, { upper_message_id: "om_3" }),
      buildItem("om_6", "merge_forward", {}, { upper_message_id: "om_3" }),
      buildItem("om_7", "text", { text: "gone" }, { upper_message_id: "om_1", deleted: true }),
    ]);
    send(world, "om_1", "merge_forward", { content: "Merged and Forwarded Message" });
    await waitUntil("the message", () => there.came.length === 1);
    expect(there.came[0]).toMatchObject({
      text: "",
      excerpts: [
        { kind: "forwarded", author: "ou_2", text: "hi @Cy" },
        { kind: "forwarded", author: "ou_2", text: "" },
        { kind: "forwarded", author: "ou_2", text: "" },
        { kind: "forwarded", author: "ou_2", text: "" },
      ],
      unreadable: ["a sticker", "a forwarded conversation", "a deleted message"],
    });
    // Feishu has the file in the message of the conversation, or in the whole conversation.
    const [file] = there.came[0]?.files ?? [];
    world.fake.said.set("om_1", { chat: "oc_1", thread: "" });
    world.fake.files.set("f4", new TextEncoder().encode("the plan"));
    const bytes = await there.platform.fetch?.(file?.ref ?? "", AbortSignal.timeout(5_000));
    expect(await new Response(bytes as ReadableStream<Uint8Array>).text()).toBe("the plan");
    expect(world.faults()).toEqual([]);
  });

  it("come with a reply in a direct chat or with a mention, but not the bot's own", async () => {
    await using world = new FeishuWorld();
    await using there = await startPlatform(world);
    world.fake.items.set("om_q", [buildItem("om_q", "text", { text: "the plan" })]);
    world.fake.items.set("om_own", [
      buildItem("om_own", "text", { text: "mine" }, { sender: { id: world.fake.appId, sender_type: "app" } }),
    ]);
    world.fake.items.set("om_f", [
      buildItem("om_f", "merge_forward", {}),
      buildItem("om_g", "text", { text: "inside" }, { upper_message_id: "om_f" }),
    ]);
    const mentions = [{ key: "@_user_1", id: { open_id: BOT }, name: "svc" }];
    const group = { chat_type: "group" };
    const ask = { text: "@_user_1 summarize" };
    send(world, "om_1", "text", { text: "summarize" }, { parent_id: "om_q" });
    send(world, "om_2", "text", { text: "chat" }, { ...group, parent_id: "om_q" });
    send(world, "om_3", "text", ask, { ...group, mentions, parent_id: "om_f" });
    send(world, "om_4", "text", ask, { ...group, mentions, parent_id: "om_own" });
    const thread = { ...group, mentions, parent_id: "om_q", root_id: "om_q", thread_id: "omt_1" };
    send(world, "om_5", "text", ask, thread);
    send(world, "om_6", "text", ask, thread);
    await waitUntil("all messages", () => there.came.length === 6);
    const quoted = (text: string) => [{ kind: "quoted", author: "ou_2", text }];
    expect(there.came.map(({ excerpts }) => excerpts)).toEqual([
      quoted("the plan"),
      [],
      quoted("inside"),
      [],
      quoted("the plan"),
      [],
    ]);
    expect(there.came.every(({ unreadable }) => unreadable.length === 0)).toBe(true);
  });

  it("do not lose the message when their request fails or gets no answer", async () => {
    await using world = new FeishuWorld();
    await using there = await startPlatform(world);
    world.fake.items.set("om_hang", "hang");
    send(world, "om_1", "text", { text: "one" }, { parent_id: "om_missing" });
    send(world, "om_2", "text", { text: "two" }, { parent_id: "om_hang" });
    send(world, "om_3", "merge_forward", {});
    await waitUntil("all messages", () => there.came.length === 3, 10_000);
    expect(there.came.map(({ text, unreadable }) => [text, unreadable])).toEqual([
      ["one", ["the quoted message"]],
      ["two", ["the quoted message"]],
      ["", ["a forwarded conversation"]],
    ]);
  });

  it("are requested at the same time, since Feishu waits 3 s for the acknowledgement", async () => {
    await using world = new FeishuWorld();
    await using there = await startPlatform(world);
    for (const id of ["om_1", "om_q"]) world.fake.items.set(id, "hang");
    send(world, "om_1", "merge_forward", {}, { parent_id: "om_q" });
    // A sequential second request would follow only after 2 s.
    await waitUntil("both requests", () => world.fake.requested.length === 2, 1_500);
    await waitUntil("the message", () => there.came.length === 1);
    expect(there.came[0]?.unreadable).toEqual(["a forwarded conversation", "the quoted message"]);
  });

  it("reach the agent, and the service names a sticker to the person", async () => {
    await using world = new FeishuWorld();
    await using app = await openWorld("lark", world);
    world.fake.items.set("om_q", [buildItem("om_q", "text", { text: "the plan" })]);
    send(world, "om_1", "text", { text: "say done" }, { parent_id: "om_q", chat_id: "oc_p7" });
    await waitUntil("the reply", () => world.sent().some(({ text }) => text.startsWith("done")));
    const [{ content }] = await app.call("GET /api/messages/inbound");
    expect(content).toBe("say done\n[Quoted from ou_2]\n> the plan");
    send(world, "om_2", "sticker", { file_key: "s" }, { chat_id: "oc_p7" });
    await waitForText(world, "Cannot read a sticker. Send text or a file.");
  });
});
