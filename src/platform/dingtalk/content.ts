import type { Excerpt, RemoteFile } from "../platform.ts";
import {
  addExcerpts,
  createContent,
  isEmpty,
  joinContents,
  type MessageContent,
  readOrNote,
} from "../quotes.ts";

interface Piece {
  msgType?: string;
  text?: string;
  /** Text of a piece in a quoted message. */
  content?: string;
  atName?: string;
  downloadCode?: string;
  pictureDownloadCode?: string;
}

interface Body extends Piece {
  richText?: Piece[];
  fileName?: string;
  /** Transcript of a voice message. */
  recognition?: string;
  title?: string;
  messageUrl?: string;
  /** Messages of a forwarded conversation, as a list or as JSON. */
  chatRecord?: Replied[] | string;
  summary?: string;
  isReplyMsg?: boolean;
  repliedMsg?: Replied;
}

/** A message inside of another one. */
interface Replied extends Omit<Piece, "content" | "text"> {
  msgtype?: string;
  senderId?: string;
  senderNick?: string;
  senderName?: string;
  text?: Body | string;
  content?: Body | string;
}

export interface RobotContent {
  msgtype: string;
  chatbotUserId?: string;
  text?: Body;
  content?: Body;
  quoteMessage?: Replied;
}

/** Nouns for types without a text. */
const NOUNS: Record<string, string> = {
  picture: "a picture",
  audio: "a voice message",
  video: "a video",
  file: "a file",
  interactiveCard: "a card",
  chatRecord: "a forwarded conversation",
  unknownMsgType: "a message that DingTalk does not describe",
};

/** Reads a message, the message that it replies to, and a forwarded conversation. */
export function readContent(message: RobotContent): MessageContent {
  const { msgtype, text, content } = message;
  return readOrNote("DingTalk", text?.content, () => {
    const own = readBody(msgtype, { ...text, ...content, text: text?.content ?? content?.text ?? "" });
    return addExcerpts(own, joinContents([readForwarded(content), readQuote(message)]));
  });
}

function readQuote({ text, content, quoteMessage, chatbotUserId }: RobotContent): MessageContent {
  const replied = text?.repliedMsg ?? content?.repliedMsg ?? quoteMessage;
  const isReply = text?.isReplyMsg ?? content?.isReplyMsg ?? false;
  if (replied === undefined) return createContent(isReply ? { unreadable: ["the quoted message"] } : {});
  // Omits the robot's own message, because the conversation already has it.
  return replied.senderId !== undefined && replied.senderId === chatbotUserId
    ? createContent()
    : readInner(replied, "quoted");
}

function readForwarded({ chatRecord, summary = "" }: Body = {}): MessageContent {
  const records = typeof chatRecord === "string" ? parseList(chatRecord) : chatRecord ?? [];
  if (records.length > 0) return joinContents(records.map((one) => readInner(one, "forwarded")));
  const text = summary.trim();
  return createContent({ excerpts: text === "" ? [] : [{ kind: "forwarded", author: "", text }] });
}

function parseList(json: string): Replied[] {
  try {
    const list = JSON.parse(json);
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}

function readInner(replied: Replied, kind: Excerpt["kind"]): MessageContent {
  const { senderNick, senderName, senderId = "", content, text: own } = replied;
  const type = replied.msgType ?? replied.msgtype ?? "text";
  const words = typeof content === "string" ? content : typeof own === "object" ? own.content : own;
  const body = typeof content === "object" ? content : {};
  const { downloadCode, pictureDownloadCode } = replied;
  const codes = { ...downloadCode && { downloadCode }, ...pictureDownloadCode && { pictureDownloadCode } };
  const { text, ...rest } = readBody(type, { ...codes, ...body, text: body.text ?? words ?? "" });
  const forwarded = readForwarded(body);
  const author = senderNick || senderName || senderId;
  return joinContents([createContent({ ...rest, excerpts: [{ kind, author, text }] }), forwarded]);
}

/** Reads a message without the messages inside of it. */
function readBody(type: string, body: Body): MessageContent {
  const { downloadCode, pictureDownloadCode, fileName } = body;
  const code = downloadCode ?? pictureDownloadCode;
  const text = (body.text ?? "").trim();
  const content = createContent({ text });
  switch (type) {
    case "text":
      return content;
    case "richText":
      return readPieces(body.richText ?? []);
    case "picture":
      content.files = listFile(code, "image.png");
      break;
    case "audio":
      content.text = (body.recognition ?? "").trim();
      content.files = listFile(code, "audio.amr");
      break;
    case "video":
      content.files = listFile(code, "video.mp4");
      break;
    case "chatRecord":
      return body.chatRecord === undefined && body.summary === undefined
        ? createContent({ unreadable: ["a forwarded conversation"] })
        : createContent();
    default:
      content.text = [body.title, text, body.messageUrl].filter((part) => part).join("\n");
      content.files = listFile(code, fileName ?? "file");
  }
  if (isEmpty(content)) content.unreadable.push(NOUNS[type] ?? `a message of the type ${type}`);
  return content;
}

function readPieces(pieces: readonly Piece[]): MessageContent {
  const texts = pieces.map((piece) => {
    const name = piece.atName === undefined ? "" : `@${piece.atName.replace(/^@/, "")}`;
    return piece.text ?? piece.content ?? name;
  });
  const files = pieces.map((piece) => listFile(piece.downloadCode ?? piece.pictureDownloadCode, "image.png"));
  const isMissing = pieces.some((_piece, at) => texts[at] === "" && files[at]?.length === 0);
  return createContent({
    text: texts.join("").trim(),
    files: files.flat(),
    unreadable: isMissing ? ["a part of the message"] : [],
  });
}

function listFile(code: string | undefined, name: string): RemoteFile[] {
  return code === undefined ? [] : [{ ref: code, name, size: null }];
}
