import { newId } from "../../base/id.ts";
import type { Choice } from "../../domain/call/choice.ts";
import { beginningOf } from "../message_parts.ts";
import { type DingTalkClient, DingTalkError } from "./client.ts";
import { markdownOf } from "./format.ts";
import type { Pressed } from "./message.ts";
import { isGroup } from "./place.ts";

/** The template has so many buttons; a question with more options has none, and is answered by number. */
const BUTTONS = [1, 2, 3, 4];
const LABEL_CHARACTERS = 60;

/** The variables of the template: text, answer, and of each button its text `b<n>` and what it gives back, `v<n>`. */
type Params = Record<string, string>;

interface Delivered {
  result: { deliverResults?: { success?: boolean; errorMsg?: string; carrierId?: string }[] };
}

interface Card {
  chat: string;
  /** Made in the card editor. */
  template: string;
  text: string;
  choices: readonly Choice[];
}

/** Whether the options of a question fit the template. */
export function takesButtons(choices: readonly Choice[]): boolean {
  return choices.length > 0 && choices.length <= BUTTONS.length;
}

/** Sends a card; answers its own id, by which it is changed, and that of its message, by which it is taken back. Throws as call() does. */
export async function sendCard(
  client: DingTalkClient,
  { chat, template, text, choices }: Card,
): Promise<{ trackId: string; messageKey: string }> {
  const trackId = newId();
  const { robotCode } = client;
  const place = isGroup(chat)
    ? {
      openSpaceId: `dtv1.card//IM_GROUP.${chat}`,
      imGroupOpenSpaceModel: { supportForward: false },
      imGroupOpenDeliverModel: { robotCode },
    }
    : {
      openSpaceId: `dtv1.card//IM_ROBOT.${chat}`,
      imRobotOpenSpaceModel: { supportForward: false },
      imRobotOpenDeliverModel: { spaceType: "IM_ROBOT", robotCode },
    };
  const { result } = await client.call<Delivered>("/v1.0/card/instances/createAndDeliver", {
    cardTemplateId: template,
    outTrackId: trackId,
    callbackType: "STREAM",
    userIdType: 1,
    cardData: { cardParamMap: paramsOf(text, choices, chat) },
    ...place,
  });
  const [delivered] = result?.deliverResults ?? [];
  if (delivered?.success === false) {
    throw new DingTalkError("", delivered.errorMsg ?? "the card cannot be delivered");
  }
  return { trackId, messageKey: delivered?.carrierId ?? "" };
}

/** Changes the text of a card. Throws as call() does. */
export async function changeCard(client: DingTalkClient, trackId: string, text: string): Promise<void> {
  const change = changeOf({ text: markdownOf(text).text });
  await client.call("/v1.0/card/instances", { outTrackId: trackId, ...change }, { method: "PUT" });
}

/** How a card changes after the press of a button: the answer below it, and no buttons. "" leaves the answer as it is. */
export function afterPress(answer: string): object {
  return changeOf({ ...noButtons(), ...(answer === "" ? {} : { answer }) });
}

function changeOf(cardParamMap: Params): object {
  return { cardData: { cardParamMap }, cardUpdateOptions: { updateCardDataByKey: true } };
}

function paramsOf(text: string, choices: readonly Choice[], chat: string): Params {
  const params: Params = { text: markdownOf(text).text, answer: "", ...noButtons() };
  choices.forEach(({ value: choice, label }, at) => {
    const value: Pressed = { choice, label, chat };
    params[`b${at + 1}`] = beginningOf(label, LABEL_CHARACTERS);
    params[`v${at + 1}`] = JSON.stringify(value);
  });
  return params;
}

// The template hides a button without a text.
function noButtons(): Params {
  return Object.fromEntries(BUTTONS.flatMap((number) => [[`b${number}`, ""], [`v${number}`, ""]]));
}
