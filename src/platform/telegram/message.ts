import { hideCodeAndQuotes } from "../../domain/chat/addressed_text.ts";
import { buildPress, type IncomingMessage } from "../platform.ts";
import {
  type Content,
  findReplied,
  formatText,
  getText,
  isNotice,
  listFiles,
  listUnreadable,
  nameUser,
  readForward,
  readQuoted,
  type Reply,
  type User,
} from "./content.ts";

interface Message extends Content, Reply {
  message_id: number;
  chat: { id: number; type: string };
  reply_markup?: { inline_keyboard: { text: string; callback_data?: string }[][] };
  media_group_id?: string;
  migrate_to_chat_id?: number;
  migrate_from_chat_id?: number;
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

/** Parses an update. Returns null for a message of a bot and for a notice of Telegram. */
export function parseUpdate(update: Update, me: User): IncomingMessage | null {
  if (update.callback_query !== undefined) return parseClick(update.callback_query);
  return update.message === undefined ? null : parseMessage(update.message, me);
}

/** Returns the old and the new id of a group that became a supergroup. Telegram reports the change in both chats. */
export function parseMove({ message }: Update): { from: string; to: string } | null {
  if (message === undefined) return null;
  const { chat, migrate_to_chat_id: to, migrate_from_chat_id: from } = message;
  if (to !== undefined) return { from: String(chat.id), to: String(to) };
  return from === undefined ? null : { from: String(from), to: String(chat.id) };
}

function parseMessage(message: Message, me: User): IncomingMessage | null {
  const { from } = message;
  if (from === undefined || from.is_bot || isNotice(message)) return null;
  const forward = readForward(message);
  const quoted = readQuoted(message, me);
  const excerpts = [...(forward === null ? [] : [forward]), ...quoted.excerpts];
  const ownFiles = listFiles(message);
  const files = [...ownFiles, ...quoted.files];
  const unreadable = [...listUnreadable(message), ...quoted.unreadable];
  const all = getText(message);
  if (all.trim() === "" && ownFiles.length === 0 && listUnreadable(message).length === 0) {
    if (message.text !== undefined) return null;
    unreadable.push("a message of an unknown kind");
  }
  // A forwarded text is not the sender's own, so its mentions do not count.
  const said = forward === null ? formatText(message) : "";
  const mention = new RegExp(`@${me.username ?? "\\0"}\\b`, "i");
  const replied = findReplied(message);
  const isOurs = replied?.from?.id === me.id;
  const stripped = said.replaceAll(new RegExp(mention, "gi"), "").trim();
  const hasMore = excerpts.length + files.length + unreadable.length > 0;
  const text = stripped === "" && !hasMore ? said : stripped;
  // Ignores a command for another bot of the group.
  if (message.chat.type !== "private" && /^\/\w+@\w/.test(text)) return null;
  return {
    ...parsePlace(message),
    id: String(message.message_id),
    sender: parseSender(from),
    // Telegram sends /start at the first contact.
    text: /^\/start(?!\S)/i.test(text) ? "/help" : text,
    files,
    isMentioned: isOurs || mention.test(hideCodeAndQuotes(said)),
    repliesTo: isOurs ? String(replied?.message_id) : "",
    choice: "",
    excerpts,
    unreadable,
    album: message.media_group_id ?? "",
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

function parseSender(user: User) {
  return { id: String(user.id), name: nameUser(user) };
}
