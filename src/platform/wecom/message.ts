import type { IncomingMessage, RemoteFile } from "../platform.ts";

interface Place {
  msgid: string;
  chatid?: string;
  chattype?: "single" | "group";
  from: { userid: string };
}

interface Remote {
  url: string;
  aeskey?: string;
}

interface Item {
  msgtype: string;
  text?: { content: string };
  image?: Remote;
}

export interface WeComMessage extends Place, Item {
  mixed?: { msg_item: Item[] };
  /** Transcript of a voice message. */
  voice?: { content: string };
  file?: Remote;
  video?: Remote;
}

interface Pressed {
  event_key?: string;
  task_id?: string;
}

/** An event: a press of a button, another connection, and others. */
export interface WeComEvent extends Place {
  event: Pressed & { eventtype: string; template_card_event?: Pressed };
}

/** Address of a file, and its key. */
export interface FileRef {
  url: string;
  key: string;
}

/** Parses a message. Returns null for one without text and file. In groups a bot gets only messages that mention it. */
export function parseMessage(said: WeComMessage): IncomingMessage | null {
  const place = parsePlace(said);
  const items = said.mixed?.msg_item ?? [said];
  const words = [...items.map(({ text }) => text?.content ?? ""), said.voice?.content ?? ""];
  const text = words.filter((one) => one.trim() !== "").join("\n");
  const files = [
    ...items.flatMap(({ image }) => listFile(image, "image.jpg")),
    ...listFile(said.file, "file"),
    ...listFile(said.video, "video.mp4"),
  ];
  if (text === "" && files.length === 0) return null;
  // A mention is @ and the name of the bot. No mark shows the end of the name.
  const own = place.isDirect ? text : text.replace(/^\s*@\S+\s*/, "");
  return { ...place, id: said.msgid, text: own || text, files, repliesTo: "", choice: "" };
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

function listFile(remote: Remote | undefined, name: string): RemoteFile[] {
  if (remote === undefined) return [];
  const ref: FileRef = { url: remote.url, key: remote.aeskey ?? "" };
  return [{ ref: JSON.stringify(ref), name, size: null }];
}
