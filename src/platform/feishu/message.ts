import { buildPress, type IncomingMessage, type RemoteFile } from "../platform.ts";
import { parseJsonObject } from "../request.ts";

interface Mention {
  key: string;
  id: { open_id?: string };
  name: string;
}

interface Message {
  message_id: string;
  root_id?: string;
  parent_id?: string;
  thread_id?: string;
  chat_id: string;
  chat_type: string;
  message_type: string;
  content: string;
  mentions?: Mention[];
}

interface MessageEvent {
  sender: { sender_id: { open_id?: string }; sender_type: string };
  message: Message;
}

/** Value of a button. It has all that the service needs to take the press. */
export interface PressValue {
  choice: string;
  label: string;
  /** Text of the question. After a press, the card shows it without buttons. */
  text: string;
  thread: string;
}

interface PressEvent {
  operator: { open_id?: string };
  action: { value?: Partial<PressValue> };
  context: { open_message_id: string; open_chat_id: string };
}

export type FeishuEvent =
  & { header: { event_id: string } }
  & (
    | { header: { event_type: "im.message.receive_v1" }; event: MessageEvent }
    | { header: { event_type: "card.action.trigger" }; event: PressEvent }
    | { header: { event_type: "" }; event: object }
  );

export function isPress(event: FeishuEvent): event is FeishuEvent & { event: PressEvent } {
  return event.header.event_type === "card.action.trigger";
}

/** Parses an event. Returns null for one of a bot, and for a message without text and file. */
export function parseEvent(given: FeishuEvent, botId: string): IncomingMessage | null {
  if (isPress(given)) return parsePress(given.event, given.header.event_id);
  return given.header.event_type === "im.message.receive_v1"
    ? parseMessage(given.event as MessageEvent, botId)
    : null;
}

function parseMessage({ sender, message }: MessageEvent, botId: string): IncomingMessage | null {
  const { message_id, chat_id, chat_type, mentions = [], root_id = "", parent_id = "" } = message;
  const person = sender.sender_id.open_id ?? "";
  if (sender.sender_type !== "user" || person === "" || person === botId) return null;
  const { text: raw, files } = parseContent(message);
  const ours = mentions.filter(({ id }) => id.open_id === botId).map(({ key }) => key);
  const text = raw.replace(/@_user_\d+|@_all\b/g, (key) => {
    if (ours.includes(key)) return "";
    return key === "@_all" ? "@all" : `@${mentions.find((one) => one.key === key)?.name ?? key}`;
  });
  const said = text.trim() || raw;
  if (said.trim() === "" && files.length === 0) return null;
  const isDirect = chat_type === "p2p";
  const isThread = !isDirect && (message.thread_id ?? "") !== "";
  return {
    chat: chat_id,
    // The service uses the first message as the id of a thread, since a reply to a thread needs one of its messages.
    thread: isThread ? root_id || message_id : "",
    id: message_id,
    sender: { id: person, name: "" },
    text: said,
    files,
    isDirect,
    isMentioned: ours.length > 0,
    repliesTo: parent_id,
    choice: "",
    excerpts: [],
    unreadable: [],
    isData: false,
  };
}

function parsePress({ operator, action, context }: PressEvent, id: string): IncomingMessage | null {
  const { choice = "", thread = "" } = action.value ?? {};
  if (typeof choice !== "string" || choice === "" || operator.open_id === undefined) return null;
  return buildPress({
    chat: context.open_chat_id,
    thread: String(thread),
    id,
    sender: { id: operator.open_id, name: "" },
    // Feishu sends no type of the chat.
    isDirect: false,
    repliesTo: context.open_message_id,
    choice,
  });
}

interface Content {
  text?: string;
  image_key?: string;
  file_key?: string;
  file_name?: string;
  title?: string;
  content?: Element[][];
}

interface Element {
  tag: string;
  text?: string;
  href?: string;
  user_id?: string;
  language?: string;
  image_key?: string;
  file_key?: string;
}

function parseContent({ message_id, message_type, content }: Message): { text: string; files: RemoteFile[] } {
  const said = parseJsonObject<Content>(content);
  const file = (key: string | undefined, type: "image" | "file", name: string): RemoteFile[] =>
    key === undefined
      ? []
      : [{ ref: `${message_id}/resources/${encodeURIComponent(key)}?type=${type}`, name, size: null }];
  switch (message_type) {
    case "text":
      return { text: said.text ?? "", files: [] };
    case "image":
      return { text: "", files: file(said.image_key, "image", "image.png") };
    case "audio":
      return { text: "", files: file(said.file_key, "file", "audio.opus") };
    case "file":
    case "media":
      return { text: "", files: file(said.file_key, "file", said.file_name ?? "file") };
    case "post": {
      const lines = said.content ?? [];
      const text = [said.title ?? "", ...lines.map((line) => line.map(formatElement).join(""))].join("\n");
      const files = lines.flat().flatMap((one) => [
        ...file(one.tag === "img" ? one.image_key : undefined, "image", "image.png"),
        ...file(one.tag === "media" ? one.file_key : undefined, "file", "video.mp4"),
      ]);
      return { text: text.trim(), files };
    }
  }
  return { text: "", files: [] };
}

function formatElement({ tag, text = "", href, user_id = "", language = "" }: Element): string {
  if (tag === "at") return user_id;
  if (tag === "a") return href === undefined || href === text ? text : `${text} (${href})`;
  if (tag === "code_block") return `\`\`\`${language.toLowerCase()}\n${text.trimEnd()}\n\`\`\``;
  return tag === "hr" ? "---" : text;
}
