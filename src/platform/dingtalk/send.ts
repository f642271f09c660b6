import { fileOf } from "../part_file.ts";
import { type Delivery, DeliveryError, type Progress } from "../platform.ts";
import { changeCard, sendCard, takesButtons } from "./card.ts";
import { deliveryError, type DingTalkClient, DingTalkError } from "./client.ts";
import { markdownOf } from "./format.ts";
import { isGroup } from "./place.ts";
import { sendable } from "./zip.ts";

interface Sent {
  processQueryKey: string;
  invalidStaffIdList: string[];
  flowControlledStaffIdList: string[];
}

/** Sends a part to its chat; answers the id that it has there. Throws DeliveryError. */
export async function deliver(client: DingTalkClient, delivery: Delivery, template: string): Promise<string> {
  const { chat, part, choices } = delivery;
  try {
    const file = await fileOf(part);
    if (file !== null) {
      const { file: taken, type } = sendable(file);
      const mediaId = await client.upload(taken);
      return await send(client, chat, "sampleFile", { mediaId, fileName: taken.name, fileType: type });
    }
    if (template === "" || !takesButtons(choices)) {
      return await send(client, chat, "sampleMarkdown", markdownOf(part.text));
    }
    return (await sendCard(client, { chat, template, text: part.text, choices })).trackId;
  } catch (error) {
    throw deliveryError(error);
  }
}

/**
 * The message that says what is done, taken away in the end: a card that is edited where there is a template, else a message that
 * stays as it was sent. Throws DeliveryError.
 */
export async function showText(
  client: DingTalkClient,
  { chat, sentAs }: Progress,
  { text, template }: { text: string; template: string },
): Promise<string> {
  const [messageKey = "", trackId = ""] = sentAs.split(" ");
  try {
    if (text === "") await takeBack(client, chat, messageKey);
    else if (trackId !== "") await changeCard(client, trackId, text);
    else if (sentAs === "" && template !== "") {
      const card = await sendCard(client, { chat, template, text, choices: [] });
      return `${card.messageKey} ${card.trackId}`;
    } else if (sentAs === "") return await send(client, chat, "sampleMarkdown", markdownOf(text));
    return sentAs;
  } catch (error) {
    // Too old to be taken back, or gone already: there is nothing left to do.
    const fault = deliveryError(error);
    if (text === "" && fault.why === "refused") return sentAs;
    throw fault;
  }
}

async function send(client: DingTalkClient, chat: string, msgKey: string, param: object): Promise<string> {
  const { robotCode } = client;
  const message = { robotCode, msgKey, msgParam: JSON.stringify(param) };
  if (isGroup(chat)) {
    const path = "/v1.0/robot/groupMessages/send";
    const sent = await client.call<Sent>(path, { ...message, openConversationId: chat });
    return sent.processQueryKey ?? "";
  }
  const path = "/v1.0/robot/oToMessages/batchSend";
  const sent = await client.call<Sent>(path, { ...message, userIds: [chat] });
  // Such an answer looks like a success.
  if (sent.flowControlledStaffIdList?.includes(chat)) {
    throw new DeliveryError("limited", "DingTalk answered that this person gets too much", { scope: "chat" });
  }
  if (sent.invalidStaffIdList?.includes(chat)) {
    throw new DingTalkError("", "this person is not there, or may not use the robot");
  }
  return sent.processQueryKey ?? "";
}

async function takeBack(client: DingTalkClient, chat: string, messageKey: string): Promise<void> {
  if (messageKey === "") return;
  const message = { robotCode: client.robotCode, processQueryKeys: [messageKey] };
  if (isGroup(chat)) {
    await client.call("/v1.0/robot/groupMessages/recall", { ...message, openConversationId: chat });
  } else await client.call("/v1.0/robot/otoMessages/batchRecall", message);
}
