import type { Excerpt, RemoteFile } from "../platform.ts";
import { createContent, type MessageContent } from "../quotes.ts";
import { parseSize } from "../receive_guard.ts";
import { type Entity, formatEntities } from "./format.ts";

export interface User {
  id: number;
  is_bot: boolean;
  first_name?: string;
  username?: string;
}

interface Chat {
  title?: string;
  username?: string;
}

/** The first sender of a forwarded message. */
interface Origin {
  sender_user?: User;
  sender_user_name?: string;
  sender_chat?: Chat;
  chat?: Chat;
}

interface FileShape {
  file_id: string;
  file_name?: string;
  file_size?: number;
}

/** Content of a message, of the message that it replies to, or of a message in another chat. */
export interface Content {
  text?: string;
  caption?: string;
  entities?: Entity[];
  caption_entities?: Entity[];
  from?: User;
  sender_chat?: Chat;
  forward_origin?: Origin;
  document?: FileShape;
  animation?: FileShape;
  photo?: FileShape[];
  voice?: FileShape;
  audio?: FileShape;
  video?: FileShape;
  video_note?: FileShape;
}

interface RepliedMessage extends Content {
  message_id: number;
  forum_topic_created?: unknown;
}

export interface Reply {
  message_thread_id?: number;
  is_topic_message?: boolean;
  reply_to_message?: RepliedMessage;
  /** A message of another chat, or of another topic. */
  external_reply?: Content & { origin?: Origin };
  /** The part of the other message that the person selected. */
  quote?: { text: string };
  reply_to_story?: unknown;
}

/** Names of content that is neither text nor a file, by field. */
const UNREADABLE: Record<string, string> = {
  sticker: "a sticker",
  venue: "a venue",
  location: "a location",
  contact: "a contact",
  poll: "a poll",
  dice: "a dice",
  story: "a story",
  game: "a game",
  invoice: "an invoice",
  checklist: "a checklist",
  paid_media: "paid media",
  giveaway: "a giveaway",
  giveaway_winners: "the winners of a giveaway",
  gift: "a gift",
  unique_gift: "a gift",
  passport_data: "Telegram Passport data",
  web_app_data: "data of a web app",
};

/** Fields of notices that Telegram writes under a person's name. */
const NOTICE =
  /^(new_chat_|left_chat_|delete_chat_|group_chat_|supergroup_chat_|channel_chat_|chat_|forum_topic_|general_forum_topic_|video_chat_|migrate_|message_auto_delete_|pinned_message|users?_shared|connected_website|write_access_|proximity_alert|boost_added|checklist_tasks_|direct_message_price|giveaway_c|paid_message_price|suggested_post_[^i]|successful_payment|refunded_payment)/;

/** Returns whether Telegram wrote the message, for example a notice about a new member. */
export function isNotice(message: object): boolean {
  return Object.keys(message).some((field) => NOTICE.test(field));
}

export function getText({ text, caption }: Content): string {
  return text ?? caption ?? "";
}

/** Returns the text of a message. Adds the Markdown marks that Telegram removed. */
export function formatText({ text, caption, entities, caption_entities }: Content): string {
  return text === undefined
    ? formatEntities(caption ?? "", caption_entities)
    : formatEntities(text, entities);
}

export function listUnreadable(content: object): string[] {
  return Object.keys(UNREADABLE).filter((field) => {
    // A message with a venue has a location field, too.
    return Object.hasOwn(content, field) && !(field === "location" && Object.hasOwn(content, "venue"));
  }).map((field) => UNREADABLE[field] ?? "");
}

export function listFiles(content: Content): RemoteFile[] {
  const { document, animation, photo, voice, audio, video, video_note } = content;
  const all: [FileShape | undefined, string][] = [
    // A message with an animation has a document field, too.
    [document ?? animation, "file"],
    // Telegram sends several sizes of a photo, the largest last.
    [photo?.at(-1), "photo.jpg"],
    [voice, "voice.ogg"],
    [audio, "audio"],
    [video, "video.mp4"],
    [video_note, "video_note.mp4"],
  ];
  return all.flatMap(([file, name]) =>
    file === undefined
      ? []
      : [{ ref: file.file_id, name: file.file_name ?? name, size: parseSize(file.file_size) }]
  );
}

/**
 * Returns the message that a person replied to. Telegram also reports each message of a topic as a reply to the first one; such a reply
 * does not count.
 */
export function findReplied(message: Reply): RepliedMessage | undefined {
  const { reply_to_message: replied, is_topic_message, message_thread_id, quote } = message;
  if (replied === undefined || replied.forum_topic_created !== undefined) return undefined;
  const isFirst = is_topic_message === true && replied.message_id === message_thread_id;
  return isFirst && quote === undefined ? undefined : replied;
}

/**
 * Reads the message that a person replied to. Skips the bot's own messages, which the conversation already has, unless the person selected
 * a part.
 */
export function readQuoted(message: Reply, me: User): MessageContent {
  const { external_reply: external, quote, reply_to_story } = message;
  const replied = findReplied(message);
  const isOurs = replied?.from?.id === me.id;
  const content = (isOurs ? undefined : replied) ?? external ?? {};
  const text = quote?.text ?? getText(content);
  const origin = content.forward_origin ?? external?.origin;
  const author = origin === undefined
    ? nameUser(replied?.from) || nameChat(replied?.sender_chat)
    : nameOrigin(origin);
  return createContent({
    excerpts: text === "" ? [] : [{ kind: "quoted", author, text }],
    files: listFiles(content),
    unreadable: [...listUnreadable(content), ...(reply_to_story === undefined ? [] : ["a story"])],
  });
}

/** Builds the excerpt of a forwarded message. Returns null for a message that was not forwarded. */
export function readForward(content: Content): Excerpt | null {
  const { forward_origin: origin } = content;
  if (origin === undefined) return null;
  return { kind: "forwarded", author: nameOrigin(origin), text: getText(content) };
}

export function nameUser(user: User | undefined): string {
  return user?.first_name ?? user?.username ?? "";
}

function nameChat(chat: Chat | undefined): string {
  return chat?.title ?? chat?.username ?? "";
}

function nameOrigin({ sender_user, sender_user_name, sender_chat, chat }: Origin): string {
  return nameUser(sender_user) || sender_user_name || nameChat(sender_chat) || nameChat(chat);
}
