import { readPartFile } from "../part_file.ts";
import { type Delivery, DeliveryError, type Progress, toDeliveryError } from "../platform.ts";
import { canShowButtons, changeCard, sendCard } from "./card.ts";
import { type DingTalkClient, DingTalkError } from "./client.ts";
import { formatWithTitle } from "./format.ts";
import { isGroup } from "./message.ts";
import { packForSending } from "./zip.ts";

interface SentMessage {
  processQueryKey: string;
  invalidStaffIdList: string[];
  flowControlledStaffIdList: string[];
}

/** Sends a part. Returns its id. Throws as the client does. */
export async function deliver(client: DingTalkClient, delivery: Delivery, template: string): Promise<string> {
  const { chat, part, choices } = delivery;
  const file = await readPartFile(part);
  if (file !== null) {
    const { file: taken, type } = packForSending(file);
    const mediaId = await client.upload(taken);
    return await send(client, chat, "sampleFile", { mediaId, fileName: taken.name, fileType: type });
  }
  if (template === "" || !canShowButtons(choices)) {
    return await send(client, chat, "sampleMarkdown", formatWithTitle(part.text));
  }
  return (await sendCard(client, { chat, template, text: part.text, choices })).trackId;
}

/**
 * Creates, edits or deletes the message of progress. With a template the message is a card. Without one it keeps its first text.
 * Throws as the client does.
 */
export async function showText(
  client: DingTalkClient,
  { chat, sentAs }: Progress,
  { text, template }: { text: string; template: string },
): Promise<string> {
  const [messageKey = "", trackId = ""] = sentAs.split(" ");
  try {
    if (text === "") await recall(client, chat, messageKey);
    else if (trackId !== "") await changeCard(client, trackId, text);
    else if (sentAs === "" && template !== "") {
      const card = await sendCard(client, { chat, template, text, choices: [] });
      return `${card.messageKey} ${card.trackId}`;
    } else if (sentAs === "") return await send(client, chat, "sampleMarkdown", formatWithTitle(text));
    return sentAs;
  } catch (error) {
    // The message is too old or deleted.
    if (text === "" && toDeliveryError(error).why === "refused") return sentAs;
    throw error;
  }
}

async function send(client: DingTalkClient, chat: string, msgKey: string, param: object): Promise<string> {
  const { robotCode } = client;
  const message = { robotCode, msgKey, msgParam: JSON.stringify(param) };
  if (isGroup(chat)) {
    const path = "/v1.0/robot/groupMessages/send";
    const sent = await client.call<SentMessage>(path, { ...message, openConversationId: chat });
    return sent.processQueryKey ?? "";
  }
  const path = "/v1.0/robot/oToMessages/batchSend";
  const sent = await client.call<SentMessage>(path, { ...message, userIds: [chat] });
  // The status of these answers is a success.
  if (sent.flowControlledStaffIdList?.includes(chat)) {
    throw new DeliveryError("limited", "DingTalk limits the messages to this person", { scope: "chat" });
  }
  if (sent.invalidStaffIdList?.includes(chat)) {
    throw new DingTalkError("", "the person does not exist or may not use the robot");
  }
  return sent.processQueryKey ?? "";
}

async function recall(client: DingTalkClient, chat: string, messageKey: string): Promise<void> {
  if (messageKey === "") return;
  const message = { robotCode: client.robotCode, processQueryKeys: [messageKey] };
  if (isGroup(chat)) {
    await client.call("/v1.0/robot/groupMessages/recall", { ...message, openConversationId: chat });
  } else await client.call("/v1.0/robot/otoMessages/batchRecall", message);
}
