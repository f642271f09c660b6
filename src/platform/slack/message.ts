import { buildPress, type IncomingMessage } from "../platform.ts";
import { createContent, isEmpty, type MessageContent, readOrNote } from "../quotes.ts";
import { readContent, readExcerpt, type Said } from "./content.ts";
import { formatPlainText } from "./format.ts";

/** A message. In a history, a message has no channel. */
export interface Event extends Said {
  type: string;
  subtype?: string;
  channel?: string;
  channel_type?: string;
  user?: string;
  bot_id?: string;
  ts?: string;
  thread_ts?: string;
  /** Author of the first message of the thread. */
  parent_user_id?: string;
  /** An audio or video call. */
  room?: { created_by?: string };
  /** Name of an app. */
  username?: string;
  user_profile?: { display_name?: string; real_name?: string };
}

export interface Press {
  type: string;
  user: { id: string; name?: string };
  container: { message_ts: string; channel_id: string };
  message?: { text?: string; thread_ts?: string };
  actions: { value?: string; action_ts: string; text?: { text: string } }[];
}

export type Envelope =
  & { envelope_id: string }
  & (
    | { type: "events_api"; payload: { event: Event } }
    | { type: "interactive"; payload: Press }
    | { type: "slash_commands"; payload: object }
  );

const HUDDLE = "huddle_thread";
// Other subtypes are edits, deletions and messages of Slack.
const BY_PEOPLE = [undefined, "file_share", "thread_broadcast", "me_message", HUDDLE];

/** Parses an envelope. Returns null for a message of a bot, and for other events. */
export function parseEnvelope(envelope: Envelope, botId: string): IncomingMessage | null {
  if (envelope.type === "interactive") return parsePress(envelope.payload);
  return envelope.type === "events_api" ? parseMessage(envelope.payload.event, botId) : null;
}

/** Parses a message. Returns null for a message of a bot. */
export function parseMessage(event: Event, botId: string): IncomingMessage | null {
  const { type, subtype, channel, bot_id, text = "", ts, thread_ts = "" } = event;
  if (!["message", "app_mention"].includes(type) || !BY_PEOPLE.includes(subtype)) return null;
  const user = subtype === HUDDLE ? event.room?.created_by ?? event.user : event.user;
  if (channel === undefined || user === undefined || ts === undefined) return null;
  const content = readOrNote("Slack", text, () => readContent(event));
  if (subtype === HUDDLE) Object.assign(content, { text: "", unreadable: ["a huddle"] });
  if (bot_id !== undefined || user === botId || isEmpty(content)) return null;
  const isDirect = event.channel_type === "im" || channel.startsWith("D");
  // In a direct chat, a thread under a message of the bot is a reply, not another conversation.
  const isReply = isDirect && event.parent_user_id === botId;
  const root = isDirect ? "" : ts;
  const mention = createMention(botId);
  return {
    ...content,
    chat: channel,
    thread: isReply ? "" : thread_ts || root,
    id: ts,
    sender: { id: user, name: "" },
    text: formatPlainText(content.text.replaceAll(mention, "")).trim() || formatPlainText(content.text),
    isDirect,
    isMentioned: type === "app_mention" || `${text}${content.text}`.search(mention) >= 0,
    repliesTo: isReply ? thread_ts : "",
    choice: "",
    isData: false,
  };
}

function createMention(botId: string): RegExp {
  return new RegExp(`<@${botId}(?:\\|[^<>]*)?>`, "g");
}

/** Returns the id of the message that starts the thread, or "" if there is no thread, or if this message or the bot started it. */
export function findThreadStart({ ts, thread_ts = "", parent_user_id }: Event, botId: string): string {
  return thread_ts === ts || parent_user_id === botId ? "" : thread_ts;
}

/** Reads the start of a thread as an excerpt. Skips a start that mentions the bot, because the conversation already has it. */
export function readThreadStart(start: Event, botId: string): MessageContent {
  const isKnown = start.user === botId || (start.text ?? "").search(createMention(botId)) >= 0;
  if (isKnown) return createContent();
  return readOrNote("Slack", "", () => {
    const { display_name, real_name } = start.user_profile ?? {};
    return readExcerpt(start, "quoted", display_name || real_name || start.username || start.user || "");
  });
}

function parsePress({ type, user, container, message, actions: [action] }: Press): IncomingMessage | null {
  if (type !== "block_actions" || action === undefined) return null;
  return buildPress({
    chat: container.channel_id,
    thread: message?.thread_ts ?? "",
    id: action.action_ts,
    sender: { id: user.id, name: user.name ?? "" },
    isDirect: container.channel_id.startsWith("D"),
    repliesTo: container.message_ts,
    choice: action.value ?? "",
  });
}
