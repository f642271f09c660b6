import { buildPress, type IncomingMessage, type RemoteFile } from "../platform.ts";
import { parseSize } from "../receive_guard.ts";

export interface User {
  id: number;
  is_bot: boolean;
  first_name?: string;
  username?: string;
}

interface FileShape {
  file_id: string;
  file_name?: string;
  file_size?: number;
}

interface Message {
  message_id: number;
  chat: { id: number; type: string };
  message_thread_id?: number;
  is_topic_message?: boolean;
  from?: User;
  text?: string;
  caption?: string;
  reply_markup?: { inline_keyboard: { text: string; callback_data?: string }[][] };
  reply_to_message?: { message_id: number; from?: User };
  document?: FileShape;
  photo?: FileShape[];
  voice?: FileShape;
  audio?: FileShape;
  video?: FileShape;
}

export interface ButtonPress {
  id: string;
  from: User;
  data?: string;
  message?: Message;
}

export interface Update {
  update_id: number;
  message?: Message;
  callback_query?: ButtonPress;
}

/** Parses an update. Returns null for one of a bot, and for a message without text and file. */
export function parseUpdate(update: Update, me: User): IncomingMessage | null {
  if (update.callback_query !== undefined) return parseClick(update.callback_query);
  return update.message === undefined ? null : parseMessage(update.message, me);
}

function parseMessage(message: Message, me: User): IncomingMessage | null {
  const { from } = message;
  const said = message.text ?? message.caption ?? "";
  const files = listFiles(message);
  if (from === undefined || from.is_bot || said.trim() === "" && files.length === 0) return null;
  const mention = new RegExp(`@${me.username ?? "\\0"}\\b`, "i");
  const original = message.reply_to_message;
  const isOurs = original?.from?.id === me.id;
  const text = said.replaceAll(new RegExp(mention, "gi"), "").trim() || said;
  return {
    ...parsePlace(message),
    id: String(message.message_id),
    sender: parseSender(from),
    // Telegram sends /start at the first contact.
    text: text === "/start" ? "/help" : text,
    files,
    isMentioned: isOurs || mention.test(said),
    repliesTo: isOurs ? String(original?.message_id) : "",
    choice: "",
    excerpts: [],
    unreadable: [],
    isData: false,
  };
}

function parseClick({ id, from, data = "", message }: ButtonPress): IncomingMessage | null {
  if (message === undefined || from.is_bot) return null;
  return buildPress({
    ...parsePlace(message),
    id,
    sender: parseSender(from),
    repliesTo: String(message.message_id),
    choice: data,
  });
}

function parsePlace({ chat, is_topic_message, message_thread_id }: Message) {
  const isTopic = is_topic_message === true && message_thread_id !== undefined;
  return {
    chat: String(chat.id),
    thread: isTopic ? String(message_thread_id) : "",
    isDirect: chat.type === "private",
  };
}

function parseSender({ id, first_name, username }: User) {
  return { id: String(id), name: first_name ?? username ?? "" };
}

function listFiles({ document, photo, voice, audio, video }: Message): RemoteFile[] {
  // A photo has several sizes. The largest is last.
  const picture = photo?.at(-1);
  const all: [FileShape | undefined, string][] = [
    [document, "file"],
    [picture, "photo.jpg"],
    [voice, "voice.ogg"],
    [audio, "audio"],
    [video, "video.mp4"],
  ];
  return all.flatMap(([file, name]) =>
    file === undefined
      ? []
      : [{ ref: file.file_id, name: file.file_name ?? name, size: parseSize(file.file_size) }]
  );
}
