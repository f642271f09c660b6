import type { IncomingMessage } from "../platform.ts";
import { parseSize } from "../receive_guard.ts";
import { formatPlainText } from "./format.ts";

interface Author {
  id: string;
  username: string;
  global_name?: string | null;
  bot?: boolean;
  system?: boolean;
}

interface Attachment {
  url: string;
  /** In ASCII. */
  filename: string;
  /** The sender's name, with or without its extension, when it is another than `filename`. */
  title?: string;
  size: number;
}

interface Body {
  content?: string;
  attachments?: Attachment[];
}

export interface Message extends Body {
  id: string;
  type: number;
  channel_id: string;
  /** Server of the channel. A direct chat has none. */
  guild_id?: string;
  author: Author;
  webhook_id?: string;
  member?: { nick?: string | null };
  mentions?: Author[];
  mention_roles?: string[];
  message_reference?: { message_id?: string };
  referenced_message?: { author: Author } | null;
  /** Forwarded messages. */
  message_snapshots?: { message: Body }[];
}

interface Component {
  label?: string;
  custom_id?: string;
  components?: Component[];
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

/** Parses a message. Returns null for one of a bot or webhook, and for one without text and file. */
export function parseMessage(message: Message, where: ChannelPlace, me: BotIdentity): IncomingMessage | null {
  const { author, mentions = [], mention_roles = [] } = message;
  if (!BY_PEOPLE.includes(message.type) || message.webhook_id !== undefined) return null;
  if (author.id === me.id || author.bot === true || author.system === true) return null;
  const bodies: Body[] = [message, ...(message.message_snapshots ?? []).map((one) => one.message)];
  const said = bodies.map(({ content = "" }) => content).filter((text) => text !== "").join("\n");
  const files = bodies.flatMap(({ attachments = [] }) => attachments)
    .map((file) => ({ ref: file.url, name: findName(file), size: parseSize(file.size) }));
  if (said.trim() === "" && files.length === 0) return null;
  const isOurs = message.referenced_message?.author.id === me.id;
  const isMentioned = isOurs || mentions.some(({ id }) => id === me.id) ||
    mention_roles.some((role) => me.roles.has(role));
  const text = said.replace(/<@!?(\d+)>|<@&(\d+)>/g, (all, person, role) => {
    return person === me.id || me.roles.has(role) ? "" : all;
  });
  return {
    ...where,
    id: message.id,
    sender: parseSender(author, message.member?.nick),
    text: formatPlainText(text, mentions).trim() || formatPlainText(said, mentions),
    files,
    isMentioned,
    repliesTo: isOurs ? message.message_reference?.message_id ?? "" : "",
    choice: "",
    isData: false,
  };
}

function findName({ filename, title = "" }: Attachment): string {
  const extension = /\.[^.]+$/.exec(filename)?.[0] ?? "";
  if (title === "") return filename;
  return title.toLowerCase().endsWith(extension.toLowerCase()) ? title : title + extension;
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

function parseSender({ id, username, global_name }: Author, nick?: string | null) {
  return { id, name: nick ?? global_name ?? username };
}
