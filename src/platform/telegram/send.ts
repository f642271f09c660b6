import { inDialect } from "../markdown.ts";
import { fileOf } from "../part_file.ts";
import type { Delivery, Progress } from "../platform.ts";
import { deliveryError, type TelegramClient, TelegramError } from "./client.ts";
import { TELEGRAM_HTML } from "./format.ts";

type Place = Pick<Delivery, "chat" | "thread" | "answers">;

interface Sent {
  message_id: number;
}

/** Sends a part to its chat, as the answer to a message; answers the id that it has there. Throws DeliveryError. */
export async function deliver(client: TelegramClient, delivery: Delivery): Promise<string> {
  const { part, choices } = delivery;
  const body = {
    ...placed(delivery),
    ...(choices.length === 0 ? {} : {
      reply_markup: {
        inline_keyboard: choices.map(({ value, label }) => [{ text: label, callback_data: value }]),
      },
    }),
  };
  try {
    const file = await fileOf(part);
    const sent = file === null
      ? await sendText(client, "sendMessage", body, part.text)
      : await client.upload<Sent>("sendDocument", body, "document", file);
    return String(sent.message_id);
  } catch (error) {
    throw deliveryError(error);
  }
}

/** The sign that somebody types, or the message that says what is done: made, edited, taken away. Throws DeliveryError. */
export async function showProgress(client: TelegramClient, progress: Progress): Promise<string> {
  const { chat, text, sentAs } = progress;
  const own = { chat_id: chat, message_id: Number(sentAs) };
  try {
    if (text === null) {
      const { reply_parameters: _none, link_preview_options: _no, ...place } = placed(progress);
      await client.call("sendChatAction", { ...place, action: "typing" });
      return sentAs;
    }
    if (sentAs === "") {
      const sent = await sendText(
        client,
        "sendMessage",
        { ...placed(progress), disable_notification: true },
        text,
      );
      return String(sent.message_id);
    }
    if (text === "") await client.call("deleteMessage", own);
    else await sendText(client, "editMessageText", own, text);
    return sentAs;
  } catch (error) {
    // It says so already, or somebody has deleted it: there is nothing left to do.
    if (error instanceof TelegramError && /not modified|to (edit|delete) not found/i.test(error.message)) {
      return sentAs;
    }
    throw deliveryError(error);
  }
}

function placed({ chat, thread, answers }: Place) {
  return {
    chat_id: chat,
    ...(thread === "" ? {} : { message_thread_id: Number(thread) }),
    ...(/^\d+$/.test(answers)
      ? { reply_parameters: { message_id: Number(answers), allow_sending_without_reply: true } }
      : {}),
    link_preview_options: { is_disabled: true },
  };
}

async function sendText(client: TelegramClient, method: string, body: object, text: string): Promise<Sent> {
  try {
    const html = { text: inDialect(text, TELEGRAM_HTML), parse_mode: "HTML" };
    return await client.call<Sent>(method, { ...body, ...html });
  } catch (error) {
    // Marks that it cannot read are sent as they are.
    if (!(error instanceof TelegramError) || !/can't parse entities/i.test(error.message)) throw error;
    return await client.call<Sent>(method, { ...body, text });
  }
}
