import { translateMarkdown } from "../markdown.ts";
import { readPartFile } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { type TelegramClient, TelegramError } from "./client.ts";
import { TELEGRAM_HTML } from "./format.ts";

type Place = Pick<Delivery, "chat" | "thread" | "answers">;

interface SentMessage {
  message_id: number;
}

/** Sends a part as the reply to a message. Returns its id. Throws as the client does. */
export async function deliver(client: TelegramClient, delivery: Delivery): Promise<string> {
  const { part, choices } = delivery;
  const body = {
    ...addressMessage(delivery),
    ...(choices.length === 0 ? {} : {
      reply_markup: {
        inline_keyboard: choices.map(({ value, label }) => [{ text: label, callback_data: value }]),
      },
    }),
  };
  const file = await readPartFile(part);
  const sent = file === null
    ? await sendText(client, "sendMessage", body, part.text)
    : await client.upload<SentMessage>("sendDocument", body, "document", file);
  return String(sent.message_id);
}

/** Shows the typing sign, or creates, edits or deletes the message of progress. Throws as the client does. */
export async function showProgress(client: TelegramClient, progress: Progress): Promise<string> {
  const { chat, text, sentAs } = progress;
  const own = { chat_id: chat, message_id: Number(sentAs) };
  try {
    if (text === null) {
      const { reply_parameters: _none, link_preview_options: _no, ...place } = addressMessage(progress);
      await client.call("sendChatAction", { ...place, action: "typing" });
      return sentAs;
    }
    if (sentAs === "") {
      const sent = await sendText(
        client,
        "sendMessage",
        { ...addressMessage(progress), disable_notification: true },
        text,
      );
      return String(sent.message_id);
    }
    if (text === "") await client.call("deleteMessage", own);
    else await sendText(client, "editMessageText", own, text);
    return sentAs;
  } catch (error) {
    // The message has this text already, or a person deleted it.
    if (error instanceof TelegramError && /not modified|to (edit|delete) not found/i.test(error.message)) {
      return sentAs;
    }
    throw error;
  }
}

function addressMessage({ chat, thread, answers }: Place) {
  return {
    chat_id: chat,
    ...(thread === "" ? {} : { message_thread_id: Number(thread) }),
    ...(/^\d+$/.test(answers)
      ? { reply_parameters: { message_id: Number(answers), allow_sending_without_reply: true } }
      : {}),
    link_preview_options: { is_disabled: true },
  };
}

async function sendText(
  client: TelegramClient,
  method: string,
  body: object,
  text: string,
): Promise<SentMessage> {
  try {
    const html = { text: translateMarkdown(text, TELEGRAM_HTML), parse_mode: "HTML" };
    return await client.call<SentMessage>(method, { ...body, ...html });
  } catch (error) {
    // Telegram can't parse the marks, so the text goes without them.
    if (!(error instanceof TelegramError) || !/can't parse entities/i.test(error.message)) throw error;
    return await client.call<SentMessage>(method, { ...body, text });
  }
}
