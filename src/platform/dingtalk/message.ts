import type { Incoming, RemoteFile } from "../platform.ts";
import { objectOf } from "../request.ts";

interface Piece {
  text?: string;
  downloadCode?: string;
}

/** A message to the robot. */
export interface RobotMessage {
  msgId: string;
  msgtype: string;
  /** "1": with this person alone, "2": a group. */
  conversationType: string;
  conversationId: string;
  /** Empty for people outside of the organisation. */
  senderStaffId?: string;
  senderId: string;
  senderNick?: string;
  chatbotUserId?: string;
  isInAtList?: boolean;
  text?: { content?: string };
  content?: Piece & { richText?: Piece[]; fileName?: string; recognition?: string };
}

/** The press of a button of a card. */
export interface Press {
  outTrackId: string;
  userId: string;
  /** JSON: which button, and what the template gives back with it. */
  content: string;
}

/** What a button of ours gives back: all that is needed to take it without asking anybody. */
export interface Pressed {
  choice: string;
  label: string;
  chat: string;
}

/** What a message says; null for our own, and for what has neither text nor file or can never be answered. */
export function messageOf(message: RobotMessage): Incoming | null {
  const { msgId, conversationId, senderStaffId = "", senderId, senderNick = "", chatbotUserId } = message;
  if (typeof msgId !== "string" || typeof conversationId !== "string") throw new Error("it has no id");
  const isDirect = message.conversationType === "1";
  // A direct chat is reached through the person, and only those of the organisation can be.
  if (senderId === chatbotUserId || isDirect && senderStaffId === "") return null;
  const { text, files } = contentOf(message);
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
    isData: false,
  };
}

function contentOf({ msgtype, text, content = {} }: RobotMessage): { text: string; files: RemoteFile[] } {
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

/** What a button gives back; null for another one. */
export function pressedOf({ content }: Press): Pressed | null {
  const { cardPrivateData } = objectOf<{ cardPrivateData: { params?: { value?: string } } }>(content);
  const { choice = "", label = "", chat = "" } = objectOf<Pressed>(cardPrivateData?.params?.value ?? "");
  return choice === "" || chat === "" ? null : { choice, label, chat };
}

/** The press as what came in. */
export function pressOf({ outTrackId, userId }: Press, { choice, chat }: Pressed): Incoming {
  return {
    chat,
    thread: "",
    id: `${userId}-${choice}`,
    sender: { id: userId, name: "" },
    text: "",
    files: [],
    isDirect: chat === userId,
    isMentioned: true,
    repliesTo: outTrackId,
    choice,
    isData: false,
  };
}
