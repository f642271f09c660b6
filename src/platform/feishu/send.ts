import { readPartFile } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { buildButtons, buildCard } from "./card.ts";
import { type FeishuClient, FeishuError } from "./client.ts";
import { removeMentions } from "./format.ts";

/** Codes for a deleted message. */
const GONE_CODES = [230011, 230110];
/** Codes for a card that Feishu can't show, or that is too long with its marks. The service sends plain text instead. */
const CARD_CODES = [230099, 230025];
/** Codes for a message that is deleted, or too old to be changed. */
const UNCHANGEABLE_CODES = [...GONE_CODES, 230031, 230072];

interface Content {
  msg_type: string;
  content: string;
  /** Feishu ignores a second message with this key for an hour. */
  uuid?: string;
}

/** Sends a part as the reply to a message, in its thread. Returns its id. Throws as the client does. */
export async function deliver(client: FeishuClient, delivery: Delivery): Promise<string> {
  const { part, choices, key, thread } = delivery;
  const file = await readPartFile(part);
  if (file !== null) {
    const file_key = await client.upload(file);
    return await send(client, delivery, buildContent("file", { file_key }, key));
  }
  const card = buildCard(part.text, buildButtons(choices, part.text, thread));
  try {
    return await send(client, delivery, buildContent("interactive", card, key));
  } catch (error) {
    if (!(error instanceof FeishuError) || !CARD_CODES.includes(error.code)) throw error;
    // Another content needs another key.
    return await send(
      client,
      delivery,
      buildContent("text", { text: removeMentions(part.text) }, `${key}-t`),
    );
  }
}

/** Creates, edits or deletes the message of progress. Throws as the client does. */
export async function showText(client: FeishuClient, progress: Progress, text: string): Promise<string> {
  const { sentAs } = progress;
  try {
    if (sentAs === "") return await send(client, progress, buildContent("interactive", buildCard(text)));
    const path = `/im/v1/messages/${sentAs}`;
    if (text === "") await client.call("DELETE", path);
    else await client.call("PATCH", path, { body: { content: JSON.stringify(buildCard(text)) } });
    return sentAs;
  } catch (error) {
    if (error instanceof FeishuError && UNCHANGEABLE_CODES.includes(error.code)) return sentAs;
    throw error;
  }
}

function buildContent(msg_type: string, content: object, uuid?: string): Content {
  return { msg_type, content: JSON.stringify(content), ...(uuid === undefined ? {} : { uuid }) };
}

async function send(
  client: FeishuClient,
  { chat, thread, answers }: Pick<Delivery, "chat" | "thread" | "answers">,
  content: Content,
): Promise<string> {
  // When the answered message is deleted, the reply answers the first message of the thread.
  for (const target of new Set([answers, thread])) {
    if (!isMessageId(target)) continue;
    try {
      const body = { ...content, ...(thread === "" ? {} : { reply_in_thread: true }) };
      const path = `/im/v1/messages/${target}/reply`;
      return (await client.call<{ message_id: string }>("POST", path, { body })).message_id;
    } catch (error) {
      if (!(error instanceof FeishuError) || !GONE_CODES.includes(error.code)) throw error;
    }
  }
  const query = { receive_id_type: "chat_id" };
  const body = { receive_id: chat, ...content };
  return (await client.call<{ message_id: string }>("POST", "/im/v1/messages", { query, body })).message_id;
}

export function isMessageId(id: string): boolean {
  return id.startsWith("om_");
}
