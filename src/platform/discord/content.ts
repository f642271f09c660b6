import type { Excerpt, RemoteFile } from "../platform.ts";
import { createContent, joinContents, type MessageContent } from "../quotes.ts";
import { parseSize } from "../receive_guard.ts";
import { formatPlainText } from "./format.ts";

export interface Author {
  id: string;
  username: string;
  global_name?: string | null;
  bot?: boolean;
  system?: boolean;
}

interface Attachment {
  url: string;
  /** The file's name in ASCII. */
  filename: string;
  /** The sender's name of the file, with or without its extension, if `filename` differs from it. */
  title?: string;
  size: number;
}

interface Embed {
  title?: string;
  description?: string;
  url?: string;
  author?: { name?: string };
  fields?: { name?: string; value?: string }[];
  footer?: { text?: string };
}

/** A button, or a block of a message that consists of blocks. */
export interface Component {
  label?: string;
  custom_id?: string;
  content?: string;
  components?: Component[];
}

/** Content of a message, of a forwarded message, or of the message that it replies to. */
export interface Content {
  author?: Author;
  content?: string;
  attachments?: Attachment[];
  embeds?: Embed[];
  components?: Component[];
  sticker_items?: unknown[];
  stickers?: unknown[];
  poll?: unknown;
  activity?: unknown;
  call?: unknown;
  mentions?: Author[];
  /** Forwarded messages. Discord does not name their authors. */
  message_snapshots?: { message: Content }[];
}

export function nameAuthor(author: Author | undefined, nick?: string | null): string {
  return nick ?? author?.global_name ?? author?.username ?? "";
}

/** Reads forwarded messages. */
export function readForwards({ message_snapshots = [] }: Content): MessageContent {
  return joinContents(message_snapshots.map(({ message }) => readOther(message, "forwarded")));
}

/** Reads the message that a person replied to, with the messages that it forwards. */
export function readQuoted(replied: Content | null | undefined): MessageContent {
  return replied ? joinContents([readOther(replied, "quoted"), readForwards(replied)]) : createContent();
}

/** Reads a person's own embeds. Discord adds a preview of each address in the text. The agent already has those addresses. */
export function readOwnEmbeds(message: Content): MessageContent {
  if (/https?:/.test(message.content ?? "")) return createContent();
  const { author, embeds = [], components = [] } = message;
  const text = formatBlocks({ embeds, components });
  return createContent(
    text === ""
      ? { unreadable: listBlocks({ embeds, components }) }
      : { excerpts: [{ kind: "quoted", author: nameAuthor(author), text }] },
  );
}

function readOther(message: Content, kind: Excerpt["kind"]): MessageContent {
  const { content = "", mentions = [], author } = message;
  const text = formatPlainText(
    [content, formatBlocks(message)].filter((part) => part !== "").join("\n"),
    mentions,
  );
  const files = listFiles(message);
  const blocks = text === "" && files.length === 0 ? listBlocks(message) : [];
  return createContent({
    excerpts: text.trim() === "" ? [] : [{ kind, author: nameAuthor(author), text }],
    files,
    unreadable: [...listUnreadable(message), ...blocks],
  });
}

export function listFiles({ attachments = [] }: Content): RemoteFile[] {
  return attachments.map((file) => ({ ref: file.url, name: findName(file), size: parseSize(file.size) }));
}

function findName({ filename, title = "" }: Attachment): string {
  const extension = /\.[^.]+$/.exec(filename)?.[0] ?? "";
  if (title === "") return filename;
  return title.toLowerCase().endsWith(extension.toLowerCase()) ? title : title + extension;
}

/** Lists the content that is neither text nor a file. */
export function listUnreadable({ sticker_items, stickers, poll, activity, call }: Content): string[] {
  const found: [boolean, string][] = [
    [(sticker_items ?? stickers ?? []).length > 0, "a sticker"],
    [Boolean(poll), "a poll"],
    [Boolean(activity), "an invitation to an activity"],
    [Boolean(call), "a call"],
  ];
  return found.flatMap(([isThere, noun]) => isThere ? [noun] : []);
}

function listBlocks({ embeds = [], components = [] }: Content): string[] {
  return [...(embeds.length > 0 ? ["an embed"] : []), ...(components.length > 0 ? ["a card"] : [])];
}

function formatBlocks({ embeds = [], components = [] }: Content): string {
  return [...embeds.map(formatEmbed), ...components.flatMap(listTexts)].filter((text) => text !== "").join(
    "\n",
  );
}

function formatEmbed({ author, title, description, url, fields = [], footer }: Embed): string {
  const lines = fields.map(({ name = "", value = "" }) => `${name}: ${value}`);
  return [author?.name, title, url, description, ...lines, footer?.text].filter(Boolean).join("\n");
}

function listTexts({ content = "", components = [] }: Component): string[] {
  return [content, ...components.flatMap(listTexts)];
}
