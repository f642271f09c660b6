import { cutText, truncate } from "../message_parts.ts";
import { translateMarkdown } from "../markdown.ts";
import { readPartFile } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { type SlackClient, SlackError } from "./client.ts";
import { SLACK_MRKDWN } from "./format.ts";

// A message with buttons consists of sections. Length limits of a section's text before and after its Markdown is translated.
const SECTION_CHARACTERS = 2_500;
const MARKED_CHARACTERS = 3_000;
const LABEL_CHARACTERS = 75;

/** Sends a part. Returns the `ts` of the message or the id of the file. Throws as the client does. */
export async function deliver(client: SlackClient, delivery: Delivery): Promise<string> {
  const { chat, thread, part, choices } = delivery;
  const place = thread === "" ? {} : { thread_ts: thread };
  const file = await readPartFile(part);
  if (file !== null) return await client.upload(file, { channel_id: chat, ...place });
  const blocks = choices.length === 0 ? {} : { blocks: [...cutSections(part.text), createButtons(choices)] };
  const { ts } = await client.call<{ ts: string }>("chat.postMessage", {
    channel: chat,
    ...place,
    ...buildText(part.text),
    ...blocks,
  });
  return ts;
}

/** Adds the reaction, or creates, edits or deletes the message of progress. Throws as the client does. */
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
    else if (sentAs !== "") await client.call("chat.update", { ...own, ...buildText(text) });
    else {
      const place = { channel: chat, ...(thread === "" ? {} : { thread_ts: thread }) };
      return (await client.call<{ ts: string }>("chat.postMessage", { ...place, ...buildText(text) })).ts;
    }
    return sentAs;
  } catch (error) {
    // The reaction exists already, or a person deleted the message.
    if (error instanceof SlackError && /^(already_reacted|message_not_found|cant_)/.test(error.code)) {
      return sentAs;
    }
    throw error;
  }
}

export function buildText(text: string): object {
  return { text: translateMarkdown(text, SLACK_MRKDWN), unfurl_links: false, unfurl_media: false };
}

// Escapes can make a piece five times as long. A piece that does not fit is cut again.
function cutSections(text: string, characters = SECTION_CHARACTERS): object[] {
  return cutText(text, characters).flatMap((piece) => {
    const marked = translateMarkdown(piece, SLACK_MRKDWN);
    if (marked.length > MARKED_CHARACTERS) return cutSections(piece, Math.floor(characters / 2));
    return [{ type: "section", text: { type: "mrkdwn", text: marked } }];
  });
}

function createButtons(choices: Delivery["choices"]): object {
  return {
    type: "actions",
    elements: choices.map(({ value, label }) => ({
      type: "button",
      action_id: value,
      value,
      text: { type: "plain_text", text: truncate(label, LABEL_CHARACTERS) },
    })),
  };
}
