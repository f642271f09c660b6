import { buildPress, type IncomingMessage } from "../platform.ts";
import { isEmpty } from "../quotes.ts";
import { parseJsonObject } from "../request.ts";
import { readContent, type RobotContent } from "./content.ts";

export interface RobotMessage extends RobotContent {
  msgId: string;
  /** "1": direct chat, "2": group. */
  conversationType: string;
  conversationId: string;
  /** Id of the person in the organization, or "" for a person outside of it. */
  senderStaffId?: string;
  senderId: string;
  senderNick?: string;
  isInAtList?: boolean;
}

export interface Press {
  outTrackId: string;
  userId: string;
  /** JSON with the value of the button. */
  content: string;
}

/** Value of a button. It has all that the service needs to take the press. */
export interface PressValue {
  choice: string;
  label: string;
  chat: string;
}

/** Parses a message. Returns null for a message of the robot itself, an empty message, and a message that the robot can't answer. */
export function parseMessage(message: RobotMessage): IncomingMessage | null {
  const { msgId, conversationId, senderStaffId = "", senderId, senderNick = "", chatbotUserId } = message;
  if (typeof msgId !== "string" || typeof conversationId !== "string") {
    throw new Error("the message has no id");
  }
  const isDirect = message.conversationType === "1";
  // The robot can write only to people of the organization.
  if (senderId === chatbotUserId || isDirect && senderStaffId === "") return null;
  const content = readContent(message);
  if (isEmpty(content)) return null;
  return {
    ...content,
    chat: isDirect ? senderStaffId : conversationId,
    thread: "",
    id: msgId,
    sender: { id: senderStaffId || senderId, name: senderNick },
    isDirect,
    isMentioned: message.isInAtList === true,
    repliesTo: "",
    choice: "",
    isData: false,
  };
}

/** Parses the value of a button. Returns null for a button that the service did not create. */
export function parsePressValue({ content }: Press): PressValue | null {
  const { cardPrivateData } = parseJsonObject<{ cardPrivateData: { params?: { value?: string } } }>(content);
  const { choice = "", label = "", chat = "" } = parseJsonObject<PressValue>(
    cardPrivateData?.params?.value ?? "",
  );
  return choice === "" || chat === "" ? null : { choice, label, chat };
}

export function parsePress({ outTrackId, userId }: Press, { choice, chat }: PressValue): IncomingMessage {
  return buildPress({
    chat,
    thread: "",
    id: `${userId}-${choice}`,
    sender: { id: userId, name: "" },
    isDirect: chat === userId,
    repliesTo: outTrackId,
    choice,
  });
}

/** Checks whether a chat is a group. Other chats are persons. */
export function isGroup(chat: string): boolean {
  return /^cid[\w+/-]{8,}={0,2}$/.test(chat);
}
