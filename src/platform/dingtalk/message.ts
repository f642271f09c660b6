import { buildPress, type IncomingMessage, type RemoteFile } from "../platform.ts";
import { parseJsonObject } from "../request.ts";

interface Piece {
  text?: string;
  downloadCode?: string;
}

export interface RobotMessage {
  msgId: string;
  msgtype: string;
  /** "1": direct chat, "2": group. */
  conversationType: string;
  conversationId: string;
  /** "": the person is outside of the organization. */
  senderStaffId?: string;
  senderId: string;
  senderNick?: string;
  chatbotUserId?: string;
  isInAtList?: boolean;
  text?: { content?: string };
  content?: Piece & { richText?: Piece[]; fileName?: string; recognition?: string };
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

/** Parses a message. Returns null for one of the robot itself, one without text and file, and one that the robot can't answer. */
export function parseMessage(message: RobotMessage): IncomingMessage | null {
  const { msgId, conversationId, senderStaffId = "", senderId, senderNick = "", chatbotUserId } = message;
  if (typeof msgId !== "string" || typeof conversationId !== "string") {
    throw new Error("the message has no id");
  }
  const isDirect = message.conversationType === "1";
  // The robot can write only to people of the organization.
  if (senderId === chatbotUserId || isDirect && senderStaffId === "") return null;
  const { text, files } = parseContent(message);
  if (text === "" && files.length === 0) return null;
  return {
    chat: isDirect ? senderStaffId : conversationId,
    thread: "",
    id: msgId,
    sender: { id: senderStaffId || senderId, name: senderNick },
    text,
    files,
    isDirect,
    isMentioned: message.isInAtList === true,
    repliesTo: "",
    choice: "",
    excerpts: [],
    unreadable: [],
    isData: false,
  };
}

function parseContent({ msgtype, text, content = {} }: RobotMessage): { text: string; files: RemoteFile[] } {
  const file = (piece: Piece, name: string): RemoteFile[] =>
    piece.downloadCode === undefined ? [] : [{ ref: piece.downloadCode, name, size: null }];
  switch (msgtype) {
    case "text":
      return { text: (text?.content ?? "").trim(), files: [] };
    case "richText": {
      const pieces = content.richText ?? [];
      return {
        text: pieces.map((piece) => piece.text ?? "").join("").trim(),
        files: pieces.flatMap((piece) => file(piece, "image.png")),
      };
    }
    case "picture":
      return { text: "", files: file(content, "image.png") };
    case "audio":
      return { text: (content.recognition ?? "").trim(), files: file(content, "audio.amr") };
    case "video":
      return { text: "", files: file(content, "video.mp4") };
    case "file":
      return { text: "", files: file(content, content.fileName ?? "file") };
  }
  return { text: "", files: [] };
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
