import type { IncomingMessage } from "../platform.ts";
import { isEmpty } from "../quotes.ts";
import { type Item, readContent } from "./content.ts";

interface Place {
  msgid: string;
  chatid?: string;
  chattype?: "single" | "group";
  from: { userid: string };
}

export interface WeComMessage extends Place, Item {
  /** The message that this one replies to. */
  quote?: Item;
}

interface Pressed {
  event_key?: string;
  task_id?: string;
}

/** An event: a press of a button, another connection, and others. */
export interface WeComEvent extends Place {
  event: Pressed & { eventtype: string; template_card_event?: Pressed };
}

/** Parses a message. Returns null for an empty message. In groups a bot receives only messages that mention it. */
export function parseMessage(said: WeComMessage): IncomingMessage | null {
  const place = parsePlace(said);
  const content = readContent(said, said.quote);
  if (isEmpty(content)) return null;
  // A mention is @ and the name of the bot. No mark shows the end of the name.
  const text = place.isDirect ? content.text : content.text.replace(/^\s*@\S+\s*/, "") || content.text;
  return { ...place, ...content, id: said.msgid, text, repliesTo: "", choice: "" };
}

/** Parses a press. Returns null for other events. */
export function parsePress(happened: WeComEvent): IncomingMessage | null {
  const { event, msgid } = happened;
  if (event.eventtype !== "template_card_event") return null;
  const { event_key = "", task_id = "" } = event.template_card_event ?? event;
  return { ...parsePlace(happened), id: msgid, text: "", files: [], repliesTo: task_id, choice: event_key };
}

function parsePlace({ chatid, chattype, from }: Place) {
  const isDirect = chattype !== "group";
  return {
    // The id of a direct chat is the person.
    chat: isDirect ? from.userid : chatid ?? "",
    thread: "",
    sender: { id: from.userid, name: "" },
    isDirect,
    isMentioned: true,
    excerpts: [],
    unreadable: [],
    isData: false,
  };
}
