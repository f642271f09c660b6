import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatExcerpt } from "../../../src/domain/chat/excerpt.ts";
import type { IncomingMessage } from "../../../src/platform/platform.ts";
import { parseMessage as parseDingTalk, type RobotMessage } from "../../../src/platform/dingtalk/message.ts";
import { type FeishuEvent, parseEvent as parseFeishu } from "../../../src/platform/feishu/message.ts";
import { type Event, parseMessage as parseSlack } from "../../../src/platform/slack/message.ts";
import { parseMessage as parseWeCom, type WeComMessage } from "../../../src/platform/wecom/message.ts";

const KEYS =
  ("text type msgtype msgType content title elements blocks files attachments author_name name is_share " +
    "url_private id mode fields rows tag richText repliedMsg downloadCode mixed msg_item image url quote senderNick")
    .split(" ");
const TYPES = [
  "text",
  "rich_text",
  "section",
  "rich_text_list",
  "richText",
  "mixed",
  "image",
  "picture",
  "div",
];

/** Generates JSON with the keys and types of the platforms. */
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(null, true, 7, "", "word", ...TYPES),
    fc.array(tie("json"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...KEYS), tie("json"), { maxKeys: 5 }),
  ),
}));

function parseAsFeishu(message_type: string, content: unknown): IncomingMessage | null {
  const message = {
    message_id: "m",
    chat_id: "c",
    chat_type: "p2p",
    message_type,
    content: JSON.stringify(content),
  };
  const sender = { sender_id: { open_id: "p" }, sender_type: "user" };
  const header = { event_id: "e", event_type: "im.message.receive_v1" };
  return parseFeishu({ header, event: { sender, message } } as FeishuEvent, "bot");
}

const person = { type: "message", channel: "D7", user: "7", ts: "1.1", text: "words" };
const robot = { msgId: "m", conversationType: "2", conversationId: "c", senderId: "p", msgtype: "text" };

const PARSERS: Record<string, (given: unknown) => IncomingMessage | null> = {
  "Slack's attachments": (given) => parseSlack({ ...person, attachments: given } as Event, "bot"),
  "Slack's blocks": (given) => parseSlack({ ...person, blocks: given } as Event, "bot"),
  "Slack's files": (given) => parseSlack({ ...person, files: [given] } as Event, "bot"),
  "DingTalk's replies": (given) =>
    parseDingTalk({ ...robot, text: { content: "words", repliedMsg: given } } as RobotMessage),
  "DingTalk's rich text": (given) =>
    parseDingTalk({ ...robot, msgtype: "richText", content: { richText: given } } as RobotMessage),
  "WeCom's quotes": (given) =>
    parseWeCom(
      {
        ...robot,
        msgid: "m",
        from: { userid: "p" },
        text: { content: "words" },
        quote: given,
      } as WeComMessage,
    ),
  "WeCom's mixed messages": (given) =>
    parseWeCom(
      { msgid: "m", from: { userid: "p" }, msgtype: "mixed", mixed: { msg_item: [given] } } as WeComMessage,
    ),
  "Feishu's cards": (given) => parseAsFeishu("interactive", given),
  "Feishu's posts": (given) => parseAsFeishu("post", { content: given }),
  "Feishu's other messages": (given) => parseAsFeishu("location", given),
};

describe("messages of an unknown form (contract-3, 20.10)", () => {
  it.each(Object.entries(PARSERS))("lose no words, and have only texts: %s", (_name, parse) => {
    fc.assert(
      fc.property(json, (given) => {
        const parsed = parse(given);
        if (parsed === null) return;
        const { text, files, excerpts, unreadable } = parsed;
        const texts = [text, ...unreadable, ...files.flatMap(({ ref, name }) => [ref, name])];
        expect(texts.every((one) => typeof one === "string")).toBe(true);
        expect(excerpts.map(formatExcerpt).every((one) => typeof one === "string")).toBe(true);
        expect(text !== "" || files.length + excerpts.length + unreadable.length > 0).toBe(true);
      }),
      { seed: 37, numRuns: 2_000 },
    );
  });

  it.each(["Slack's attachments", "Slack's files", "DingTalk's replies", "WeCom's quotes"])(
    "keep the person's own words: %s",
    (name) => {
      fc.assert(
        fc.property(json, (given) => {
          expect(PARSERS[name]?.(given)?.text).toBe("words");
        }),
        { seed: 37, numRuns: 2_000 },
      );
    },
  );
});
