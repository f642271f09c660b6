import { createId } from "../../base/id.ts";
import type { Choice } from "../../domain/call/choice.ts";
import { truncate } from "../message_parts.ts";
import { type DingTalkClient, DingTalkError } from "./client.ts";
import { formatWithTitle } from "./format.ts";
import { isGroup, type PressValue } from "./message.ts";

/** Buttons of the template. People answer a question with more options by number. */
const BUTTONS = [1, 2, 3, 4];
const LABEL_CHARACTERS = 60;

/** Variables of the template: text, answer, and for each button its text `b<n>` and value `v<n>`. */
type Params = Record<string, string>;

interface CardAnswer {
  result: { deliverResults?: { success?: boolean; errorMsg?: string; carrierId?: string }[] };
}

interface Card {
  chat: string;
  /** Id of a template in the card editor. */
  template: string;
  text: string;
  choices: readonly Choice[];
}

export function canShowButtons(choices: readonly Choice[]): boolean {
  return choices.length > 0 && choices.length <= BUTTONS.length;
}

/** Sends a card. Returns the id of the card, for changes, and of its message, for a recall. Throws as call() does. */
export async function sendCard(
  client: DingTalkClient,
  { chat, template, text, choices }: Card,
): Promise<{ trackId: string; messageKey: string }> {
  const trackId = createId();
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
  const { result } = await client.call<CardAnswer>("/v1.0/card/instances/createAndDeliver", {
    cardTemplateId: template,
    outTrackId: trackId,
    callbackType: "STREAM",
    userIdType: 1,
    cardData: { cardParamMap: buildParams(text, choices, chat) },
    ...place,
  });
  const [delivered] = result?.deliverResults ?? [];
  if (delivered?.success === false) {
    throw new DingTalkError("", delivered.errorMsg ?? "it did not deliver the card");
  }
  return { trackId, messageKey: delivered?.carrierId ?? "" };
}

export async function changeCard(client: DingTalkClient, trackId: string, text: string): Promise<void> {
  const change = buildChange({ text: formatWithTitle(text).text });
  await client.call("/v1.0/card/instances", { outTrackId: trackId, ...change }, { method: "PUT" });
}

/** Builds the change of a card after a press: no buttons, and the answer. "" keeps the answer. */
export function buildPressChange(answer: string): object {
  return buildChange({ ...hideButtons(), ...(answer === "" ? {} : { answer }) });
}

function buildChange(cardParamMap: Params): object {
  return { cardData: { cardParamMap }, cardUpdateOptions: { updateCardDataByKey: true } };
}

function buildParams(text: string, choices: readonly Choice[], chat: string): Params {
  const params: Params = { text: formatWithTitle(text).text, answer: "", ...hideButtons() };
  choices.forEach(({ value: choice, label }, at) => {
    const value: PressValue = { choice, label, chat };
    params[`b${at + 1}`] = truncate(label, LABEL_CHARACTERS);
    params[`v${at + 1}`] = JSON.stringify(value);
  });
  return params;
}

// The template hides a button without a text.
function hideButtons(): Params {
  return Object.fromEntries(BUTTONS.flatMap((number) => [[`b${number}`, ""], [`v${number}`, ""]]));
}
