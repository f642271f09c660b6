import { buildPress, type IncomingMessage } from "../platform.ts";
import { parseSize } from "../receive_guard.ts";
import { formatPlainText } from "./format.ts";

interface SlackFile {
  id: string;
  name?: string;
  title?: string;
  size?: number;
  url_private_download?: string;
}

/** A message. In a history it has no channel. */
export interface Event {
  type: string;
  subtype?: string;
  channel?: string;
  channel_type?: string;
  user?: string;
  bot_id?: string;
  text?: string;
  ts?: string;
  thread_ts?: string;
  /** Author of the first message of the thread. */
  parent_user_id?: string;
  files?: SlackFile[];
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

// Other subtypes are edits, deletions and messages of Slack.
const BY_PEOPLE = [undefined, "file_share", "thread_broadcast"];

/** Parses an envelope. Returns null for a message of a bot, and for other events. */
export function parseEnvelope(envelope: Envelope, botId: string): IncomingMessage | null {
  if (envelope.type === "interactive") return parsePress(envelope.payload);
  return envelope.type === "events_api" ? parseMessage(envelope.payload.event, botId) : null;
}

/** Parses a message. Returns null for one of a bot. */
export function parseMessage(event: Event, botId: string): IncomingMessage | null {
  const { type, subtype, channel, user, bot_id, text = "", ts, thread_ts = "", files = [] } = event;
  if (!["message", "app_mention"].includes(type) || !BY_PEOPLE.includes(subtype)) return null;
  if (channel === undefined || user === undefined || ts === undefined) return null;
  if (bot_id !== undefined || user === botId || text.trim() === "" && files.length === 0) return null;
  const isDirect = event.channel_type === "im" || channel.startsWith("D");
  const mention = `<@${botId}>`;
  // In a direct chat, a thread under a message of the bot is a reply, not another conversation.
  const isReply = isDirect && event.parent_user_id === botId;
  const root = isDirect ? "" : ts;
  return {
    chat: channel,
    thread: isReply ? "" : thread_ts || root,
    id: ts,
    sender: { id: user, name: "" },
    text: formatPlainText(text.replaceAll(mention, "")).trim() || formatPlainText(text),
    files: files.flatMap(({ name, title, size, url_private_download: ref }) =>
      ref === undefined ? [] : [{ ref, name: name || title || "file", size: parseSize(size) }]
    ),
    isDirect,
    isMentioned: type === "app_mention" || text.includes(mention),
    repliesTo: isReply ? thread_ts : "",
    choice: "",
    isData: false,
  };
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
