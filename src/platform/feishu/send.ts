import { fileOf } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { buttonsOf, cardOf } from "./card.ts";
import { deliveryError, type FeishuClient, FeishuError } from "./client.ts";
import { mentionless } from "./format.ts";

/** The message that is answered was taken back, or is not there any more. */
const GONE_CODES = [230011, 230110];
/** The card cannot be shown, or is too long with its marks: it is sent as plain text then. */
const CARD_CODES = [230099, 230025];
/** A message of ours that is gone, or too old to be changed: there is nothing left to do. */
const UNCHANGEABLE_CODES = [...GONE_CODES, 230031, 230072];

interface Content {
  msg_type: string;
  content: string;
  /** The key against doubles, which counts for an hour. */
  uuid?: string;
}

/** Sends a part to its chat, as the answer to a message and in its thread; answers the id that it has there. Throws DeliveryError. */
export async function deliver(client: FeishuClient, delivery: Delivery): Promise<string> {
  const { part, choices, key, thread } = delivery;
  try {
    const file = await fileOf(part);
    if (file !== null) {
      const file_key = await client.upload(file);
      return await send(client, delivery, contentOf("file", { file_key }, key));
    }
    const card = cardOf(part.text, buttonsOf(choices, part.text, thread));
    try {
      return await send(client, delivery, contentOf("interactive", card, key));
    } catch (error) {
      if (!(error instanceof FeishuError) || !CARD_CODES.includes(error.code)) throw error;
      // Another content has another key.
      return await send(client, delivery, contentOf("text", { text: mentionless(part.text) }, `${key}-t`));
    }
  } catch (error) {
    throw deliveryError(error);
  }
}

/** The message that says what is done: made, edited, taken away. Throws DeliveryError. */
export async function showText(client: FeishuClient, progress: Progress, text: string): Promise<string> {
  const { sentAs } = progress;
  try {
    if (sentAs === "") return await send(client, progress, contentOf("interactive", cardOf(text)));
    const path = `/im/v1/messages/${sentAs}`;
    if (text === "") await client.call("DELETE", path);
    else await client.call("PATCH", path, { body: { content: JSON.stringify(cardOf(text)) } });
    return sentAs;
  } catch (error) {
    if (error instanceof FeishuError && UNCHANGEABLE_CODES.includes(error.code)) return sentAs;
    throw deliveryError(error);
  }
}

function contentOf(msg_type: string, content: object, uuid?: string): Content {
  return { msg_type, content: JSON.stringify(content), ...(uuid === undefined ? {} : { uuid }) };
}

async function send(
  client: FeishuClient,
  { chat, thread, answers }: Pick<Delivery, "chat" | "thread" | "answers">,
  content: Content,
): Promise<string> {
  // In a thread, the first message of it stands in for one that is gone.
  for (const target of new Set([answers, thread])) {
    if (!/^om_/.test(target)) continue;
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
