import type { RemoteFile } from "../platform.ts";
import {
  addExcerpts,
  createContent,
  isEmpty,
  joinContents,
  type MessageContent,
  readOrNote,
} from "../quotes.ts";

interface Remote {
  url?: string;
  aeskey?: string;
  name?: string;
}

/** A message, a part of a mixed message, or a quoted message. */
export interface Item {
  msgtype: string;
  text?: { content?: string };
  image?: Remote;
  mixed?: { msg_item?: Item[] };
  /** Transcript of a voice message. */
  voice?: { content?: string };
  file?: Remote;
  video?: Remote;
  link?: { title?: string; description?: string; url?: string };
  location?: { name?: string; address?: string; latitude?: number | string; longitude?: number | string };
  markdown?: { content?: string };
  stream?: { content?: string };
}

/** Address and key of a file. */
export interface FileRef {
  url: string;
  key: string;
}

const NOUNS: Record<string, string> = {
  image: "a picture",
  voice: "a voice message",
  file: "a file",
  video: "a video",
  location: "a location",
  link: "a link",
  template_card: "a card",
};

/** Reads a message, and the message that it replies to. WeCom does not name the author of a quoted message. */
export function readContent(message: Item, quote: Item | undefined): MessageContent {
  return readOrNote("WeCom", message.text?.content, () => {
    const own = readItem(message);
    if (quote === undefined) return own;
    const { text, ...rest } = readOrNote("WeCom", quote.text?.content, () => readItem(quote));
    return addExcerpts(own, createContent({ ...rest, excerpts: [{ kind: "quoted", author: "", text }] }));
  });
}

function readItem(item: Item): MessageContent {
  const { msgtype, mixed } = item;
  if (mixed?.msg_item !== undefined) {
    const items = mixed.msg_item.map(readItem);
    const text = items.map((one) => one.text).filter((one) => one !== "").join("\n");
    return { ...joinContents(items), text };
  }
  const { text, voice, markdown, stream, link, location } = item;
  const words = [text?.content, voice?.content, markdown?.content, stream?.content];
  if (link !== undefined) words.push(link.title, link.description, link.url);
  if (location !== undefined) words.push(formatLocation(location));
  const content = createContent({
    text: words.filter((one) => one !== undefined && one.trim() !== "").join("\n"),
    files: [
      ...listFile(item.image, "image.jpg"),
      ...listFile(item.file, "file"),
      ...listFile(item.video, "video.mp4"),
    ],
  });
  if (isEmpty(content) && msgtype !== "text") {
    content.unreadable.push(NOUNS[msgtype] ?? `a message of the type ${msgtype}`);
  }
  return content;
}

function formatLocation({ name, address, latitude, longitude }: NonNullable<Item["location"]>): string {
  const place = latitude === undefined ? "" : `(${latitude}, ${longitude})`;
  const parts = [name, address, place].filter((part) => part);
  return parts.length === 0 ? "" : `Location: ${parts.join(" ")}`;
}

function listFile(remote: Remote | undefined, name: string): RemoteFile[] {
  if (remote?.url === undefined) return [];
  const ref: FileRef = { url: remote.url, key: remote.aeskey ?? "" };
  return [{ ref: JSON.stringify(ref), name: remote.name || name, size: null }];
}
