import { beginningOf, cutText } from "../message_parts.ts";
import { inDialect } from "../markdown.ts";
import { fileOf } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { deliveryError, type SlackClient, SlackError } from "./client.ts";
import { SLACK_MRKDWN } from "./format.ts";

// Of one section, which a message with buttons is made of; marks need some room.
const SECTION_CHARACTERS = 2_500;
// What Slack takes of one.
const MARKED_CHARACTERS = 3_000;
const LABEL_CHARACTERS = 75;

/** Sends a part to its chat, in its thread; answers the `ts` that it has there, of a file its id. Throws DeliveryError. */
export async function deliver(client: SlackClient, delivery: Delivery): Promise<string> {
  const { chat, thread, part, choices } = delivery;
  const place = thread === "" ? {} : { thread_ts: thread };
  try {
    const file = await fileOf(part);
    if (file !== null) return await client.upload(file, { channel_id: chat, ...place });
    const blocks = choices.length === 0 ? {} : { blocks: [...sectionsOf(part.text), buttonsOf(choices)] };
    const { ts } = await client.call<{ ts: string }>("chat.postMessage", {
      channel: chat,
      ...place,
      ...textOf(part.text),
      ...blocks,
    });
    return ts;
  } catch (error) {
    throw deliveryError(error);
  }
}

/** The sign that it was seen, or the message that says what is done: made, edited, taken away. Throws DeliveryError. */
export async function showProgress(client: SlackClient, progress: Progress): Promise<string> {
  const { chat, thread, text, sentAs, answers } = progress;
  const own = { channel: chat, ts: sentAs };
  try {
    if (text === null) {
      if (answers !== "") {
        await client.call("reactions.add", { channel: chat, timestamp: answers, name: "eyes" });
      }
      return sentAs;
    }
    if (text === "") await client.call("chat.delete", own);
    else if (sentAs !== "") await client.call("chat.update", { ...own, ...textOf(text) });
    else {
      const place = { channel: chat, ...(thread === "" ? {} : { thread_ts: thread }) };
      return (await client.call<{ ts: string }>("chat.postMessage", { ...place, ...textOf(text) })).ts;
    }
    return sentAs;
  } catch (error) {
    // It is there already, or somebody has deleted it: there is nothing left to do.
    if (error instanceof SlackError && /^(already_reacted|message_not_found|cant_)/.test(error.code)) {
      return sentAs;
    }
    throw deliveryError(error);
  }
}

/** The fields of a message that say a text. */
export function textOf(text: string): object {
  return { text: inDialect(text, SLACK_MRKDWN), unfurl_links: false, unfurl_media: false };
}

// What is escaped is longer, up to five times: a piece that does not fit is cut again.
function sectionsOf(text: string, characters = SECTION_CHARACTERS): object[] {
  return cutText(text, characters).flatMap((piece) => {
    const marked = inDialect(piece, SLACK_MRKDWN);
    if (marked.length > MARKED_CHARACTERS) return sectionsOf(piece, Math.floor(characters / 2));
    return [{ type: "section", text: { type: "mrkdwn", text: marked } }];
  });
}

function buttonsOf(choices: Delivery["choices"]): object {
  return {
    type: "actions",
    elements: choices.map(({ value, label }) => ({
      type: "button",
      action_id: value,
      value,
      text: { type: "plain_text", text: beginningOf(label, LABEL_CHARACTERS) },
    })),
  };
}
