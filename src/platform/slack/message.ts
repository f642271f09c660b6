import type { Incoming } from "../platform.ts";
import { sizeOf } from "../receive_guard.ts";
import { plainText } from "./format.ts";

interface SlackFile {
  id: string;
  name?: string;
  size?: number;
  url_private_download?: string;
}

/** A message as Slack tells of it; in a history without its channel. */
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
  /** Who wrote the message that the thread is about. */
  parent_user_id?: string;
  files?: SlackFile[];
}

/** A press of a button of ours. */
export interface Press {
  type: string;
  user: { id: string; name?: string };
  container: { message_ts: string; channel_id: string };
  message?: { text?: string; thread_ts?: string };
  actions: { value?: string; action_ts: string; text?: { text: string } }[];
}

/** One frame of the socket. */
export type Envelope =
  & { envelope_id: string }
  & (
    | { type: "events_api"; payload: { event: Event } }
    | { type: "interactive"; payload: Press }
    | { type: "slash_commands"; payload: object }
  );

// Everything else is an edit, a deletion, or something that Slack itself says.
const SAID = [undefined, "file_share", "thread_broadcast"];

/** What an envelope says; null for what bots say, ourselves among them, and for what is no message. */
export function incomingOf(envelope: Envelope, botId: string): Incoming | null {
  if (envelope.type === "interactive") return pressOf(envelope.payload);
  return envelope.type === "events_api" ? messageOf(envelope.payload.event, botId) : null;
}

/** What a message says; null for what bots say, ourselves among them. */
export function messageOf(event: Event, botId: string): Incoming | null {
  const { type, subtype, channel, user, bot_id, text = "", ts, thread_ts = "", files = [] } = event;
  if (!["message", "app_mention"].includes(type) || !SAID.includes(subtype)) return null;
  if (channel === undefined || user === undefined || ts === undefined) return null;
  if (bot_id !== undefined || user === botId || text.trim() === "" && files.length === 0) return null;
  const isDirect = event.channel_type === "im" || channel.startsWith("D");
  const mention = `<@${botId}>`;
  // In a direct chat the thread below a message of ours is a reply to it, and not another conversation.
  const isReply = isDirect && event.parent_user_id === botId;
  const root = isDirect ? "" : ts;
  return {
    chat: channel,
    thread: isReply ? "" : thread_ts || root,
    id: ts,
    sender: { id: user, name: "" },
    text: plainText(text.replaceAll(mention, "")).trim() || plainText(text),
    files: files.flatMap(({ name = "file", size, url_private_download: ref }) =>
      ref === undefined ? [] : [{ ref, name, size: sizeOf(size) }]
    ),
    isDirect,
    isMentioned: type === "app_mention" || text.includes(mention),
    repliesTo: isReply ? thread_ts : "",
    choice: "",
    isData: false,
  };
}

function pressOf({ type, user, container, message, actions: [action] }: Press): Incoming | null {
  if (type !== "block_actions" || action === undefined) return null;
  return {
    chat: container.channel_id,
    thread: message?.thread_ts ?? "",
    id: action.action_ts,
    sender: { id: user.id, name: user.name ?? "" },
    text: "",
    files: [],
    isDirect: container.channel_id.startsWith("D"),
    isMentioned: true,
    repliesTo: container.message_ts,
    choice: action.value ?? "",
    isData: false,
  };
}
