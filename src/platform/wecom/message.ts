import type { Incoming, RemoteFile } from "../platform.ts";

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

/** What a person says. */
export interface Said extends Place, Item {
  mixed?: { msg_item: Item[] };
  /** What was spoken, as WeCom understood it. */
  voice?: { content: string };
  file?: Remote;
  video?: Remote;
}

interface Pressed {
  event_key?: string;
  task_id?: string;
}

/** What happens: a button that was pressed, another connection, and what is of no use here. */
export interface Happened extends Place {
  event: Pressed & { eventtype: string; template_card_event?: Pressed };
}

/** Where the bytes of a file are, and the key that they are closed with; each file has its own. */
export interface FileRef {
  url: string;
  key: string;
}

/** What a message says; null for what has neither text nor file. In groups a bot hears what mentions it, and nothing else. */
export function messageOf(said: Said): Incoming | null {
  const place = placeOf(said);
  const items = said.mixed?.msg_item ?? [said];
  const words = [...items.map(({ text }) => text?.content ?? ""), said.voice?.content ?? ""];
  const text = words.filter((one) => one.trim() !== "").join("\n");
  const files = [
    ...items.flatMap(({ image }) => fileOf(image, "image.jpg")),
    ...fileOf(said.file, "file"),
    ...fileOf(said.video, "video.mp4"),
  ];
  if (text === "" && files.length === 0) return null;
  // The mention of a bot is its name, without a mark of where that ends.
  const own = place.isDirect ? text : text.replace(/^\s*@\S+\s*/, "");
  return { ...place, id: said.msgid, text: own || text, files, repliesTo: "", choice: "" };
}

/** What a press says, and of which card it is a button; null for everything else that happens. */
export function pressOf(happened: Happened): Incoming | null {
  const { event, msgid } = happened;
  if (event.eventtype !== "template_card_event") return null;
  const { event_key = "", task_id = "" } = event.template_card_event ?? event;
  return { ...placeOf(happened), id: msgid, text: "", files: [], repliesTo: task_id, choice: event_key };
}

function placeOf({ chatid, chattype, from }: Place) {
  const isDirect = chattype !== "group";
  return {
    // A direct chat has the name of the person.
    chat: isDirect ? from.userid : chatid ?? "",
    thread: "",
    sender: { id: from.userid, name: "" },
    isDirect,
    isMentioned: true,
    isData: false,
  };
}

function fileOf(remote: Remote | undefined, name: string): RemoteFile[] {
  if (remote === undefined) return [];
  const ref: FileRef = { url: remote.url, key: remote.aeskey ?? "" };
  return [{ ref: JSON.stringify(ref), name, size: null }];
}
