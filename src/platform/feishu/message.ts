import { buildPress, type IncomingMessage } from "../platform.ts";
import { isEmpty } from "../quotes.ts";
import { type Mention, readContent } from "./content.ts";

export interface Message {
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

export function isMessage(event: FeishuEvent): event is FeishuEvent & { event: MessageEvent } {
  return event.header.event_type === "im.message.receive_v1";
}

/** Parses an event. Returns null for a message of a bot and for an empty message. */
export function parseEvent(given: FeishuEvent, botId: string): IncomingMessage | null {
  if (isPress(given)) return parsePress(given.event, given.header.event_id);
  return isMessage(given) ? parseMessage(given.event, botId) : null;
}

function parseMessage({ sender, message }: MessageEvent, botId: string): IncomingMessage | null {
  const { message_id, chat_id, chat_type, mentions = [], root_id = "", parent_id = "" } = message;
  const person = sender.sender_id.open_id ?? "";
  if (sender.sender_type !== "user" || person === "" || person === botId) return null;
  const ours = mentions.filter(({ id }) => typeof id === "object" && id.open_id === botId).map(({ key }) =>
    key
  );
  const { message_type: type, content: json } = message;
  const content = readContent({ sources: [message_id], type, content: json, mentions }, ours);
  if (isEmpty(content)) return null;
  const isDirect = chat_type === "p2p";
  const isThread = !isDirect && (message.thread_id ?? "") !== "";
  return {
    ...content,
    chat: chat_id,
    // The service uses the first message as the id of a thread, since a reply to a thread needs one of its messages.
    thread: isThread ? root_id || message_id : "",
    id: message_id,
    sender: { id: person, name: "" },
    isDirect,
    isMentioned: ours.length > 0,
    repliesTo: parent_id,
    choice: "",
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
