import type { IncomingMessage } from "../platform.ts";
import { createContent, isEmpty, joinContents } from "../quotes.ts";
import {
  type Author,
  type Component,
  type Content,
  listFiles,
  listUnreadable,
  nameAuthor,
  readForwards,
  readOwnEmbeds,
  readQuoted,
} from "./content.ts";
import { formatPlainText } from "./format.ts";

export interface Message extends Content {
  id: string;
  type: number;
  channel_id: string;
  /** Server of the channel. A direct chat has none. */
  guild_id?: string;
  author: Author;
  webhook_id?: string;
  member?: { nick?: string | null };
  mention_roles?: string[];
  message_reference?: { message_id?: string };
  referenced_message?: Content & { author: Author } | null;
}

/** A press of a button, or a registered command. */
export interface Interaction {
  id: string;
  token: string;
  type: number;
  channel_id: string;
  user?: Author;
  member?: { nick?: string | null; user: Author };
  message?: { id: string; content: string; components?: Component[] };
  data?: { custom_id?: string; name?: string; options?: { value?: unknown }[] };
}

/** Chat and thread of a Discord channel. In Discord, a thread is a channel with a parent. */
export interface ChannelPlace {
  chat: string;
  thread: string;
  isDirect: boolean;
}

/** Id of the bot, and its roles in the servers. A mention of a role counts as one of the bot. */
export interface BotIdentity {
  id: string;
  roles: ReadonlySet<string>;
}

/** Types of messages and replies. Messages of other types are notices of Discord. */
const BY_PEOPLE = [0, 19];
const COMMAND = 2;
const COMPONENT = 3;

/** Parses a message. Returns null for a message of a bot or webhook, and for a notice of Discord. */
export function parseMessage(message: Message, where: ChannelPlace, me: BotIdentity): IncomingMessage | null {
  const { author, content: said = "", mentions = [], mention_roles = [] } = message;
  if (!BY_PEOPLE.includes(message.type) || message.webhook_id !== undefined) return null;
  if (author.id === me.id || author.bot === true || author.system === true) return null;
  const isOurs = message.referenced_message?.author.id === me.id;
  const own = createContent({ files: listFiles(message), unreadable: listUnreadable(message) });
  const parts = [own, readOwnEmbeds(message), readForwards(message)];
  // Omits the bot's own messages, because the conversation already has them.
  const quoted = isOurs ? [] : [readQuoted(message.referenced_message)];
  if (said.trim() === "" && isEmpty(joinContents(parts))) own.unreadable.push("a message of an unknown kind");
  const content = joinContents([...parts, ...quoted]);
  const isMentioned = isOurs || mentions.some(({ id }) => id === me.id) ||
    mention_roles.some((role) => me.roles.has(role));
  const stripped = said.replace(/<@!?(\d+)>|<@&(\d+)>/g, (all, person, role) => {
    return person === me.id || me.roles.has(role) ? "" : all;
  });
  const text = formatPlainText(stripped, mentions).trim();
  return {
    ...where,
    ...content,
    id: message.id,
    sender: parseSender(author, message.member?.nick),
    text: text === "" && isEmpty(content) ? formatPlainText(said, mentions) : text,
    isMentioned,
    repliesTo: isOurs ? message.message_reference?.message_id ?? "" : "",
    choice: "",
    isData: false,
  };
}

/** Parses a press, or a command as if a person had typed it. Returns null for other interactions. */
export function parseInteraction(given: Interaction, where: ChannelPlace): IncomingMessage | null {
  const { type, id, message, data } = given;
  const person = given.member?.user ?? given.user;
  if (person === undefined) return null;
  const said = {
    ...where,
    id,
    sender: parseSender(person, given.member?.nick),
    files: [],
    isMentioned: true,
    excerpts: [],
    unreadable: [],
    isData: false,
  };
  if (type === COMPONENT && message !== undefined) {
    return { ...said, text: "", repliesTo: message.id, choice: data?.custom_id ?? "" };
  }
  return type === COMMAND ? { ...said, text: formatCommand(given), repliesTo: "", choice: "" } : null;
}

/** Formats a command as a person would type it. Returns "" for other interactions. */
export function formatCommand({ type, data: { name = "", options = [] } = {} }: Interaction): string {
  if (type !== COMMAND || name === "") return "";
  return [`/${name}`, ...options.map(({ value }) => String(value ?? ""))].join(" ");
}

export function findLabel({ message, data }: Interaction): string {
  const buttons = (message?.components ?? []).flatMap(({ components = [] }) => components);
  return buttons.find(({ custom_id }) => custom_id === data?.custom_id)?.label ?? "";
}

function parseSender(author: Author, nick?: string | null) {
  return { id: author.id, name: nameAuthor(author, nick) };
}
