import type { RemoteFile } from "../platform.ts";
import { addExcerpts, createContent, joinContents, type MessageContent } from "../quotes.ts";
import { parseSize } from "../receive_guard.ts";
import { type Block, formatBlocks, isRichText } from "./blocks.ts";
import { formatPlainText } from "./format.ts";

export interface SlackFile {
  id?: string;
  name?: string;
  title?: string;
  size?: number;
  mode?: string;
  filetype?: string;
  file_access?: string;
  is_external?: boolean;
  url_private?: string;
  url_private_download?: string;
}

/** A shared message, the preview of a link, or a part of an app's message. */
export interface Attachment {
  is_share?: boolean;
  is_msg_unfurl?: boolean;
  is_app_unfurl?: boolean;
  from_url?: string;
  author_name?: string;
  author_subname?: string;
  author_id?: string;
  pretext?: string;
  title?: string;
  title_link?: string;
  text?: string;
  fallback?: string;
  image_url?: string;
  fields?: { title?: string; value?: string }[];
  blocks?: Block[];
  message_blocks?: { message?: { blocks?: Block[] } }[];
  files?: SlackFile[];
  attachments?: Attachment[];
}

export interface Said {
  text?: string;
  blocks?: Block[];
  files?: SlackFile[];
  attachments?: Attachment[];
}

// Slack's text for a message that consists only of blocks.
const NO_TEXT = /^\s*(?:This content can't be displayed\.?|\[no preview available\])\s*$/i;
const DEPTH_MAX = 4;

/** Reads a message without its shared messages. `text` is in mrkdwn. */
function readOwnContent({ text = "", blocks = [], files = [] }: Said): MessageContent {
  const content = createContent({ text: NO_TEXT.test(text) ? "" : text });
  if (content.text.trim() === "" || !isRichText(blocks)) {
    content.text = formatBlocks(blocks, content.unreadable) || content.text;
  }
  for (const file of files) {
    const read = readFile(file);
    if (typeof read === "string") content.unreadable.push(read);
    else content.files.push(read);
  }
  return content;
}

/** Reads a message with its shared messages as excerpts. `text` is in mrkdwn. */
export function readContent(said: Said): MessageContent {
  const shared = (said.attachments ?? []).filter(isMessage).map((one) => readAttachment(one));
  return addExcerpts(readOwnContent(said), joinContents(shared));
}

/** Reads a message as an excerpt. */
export function readExcerpt(said: Said, kind: "quoted" | "forwarded", author: string): MessageContent {
  const { text, ...content } = readContent(said);
  const own = { kind, author, text: formatPlainText(text).trim() };
  return { ...content, text: "", excerpts: [own, ...content.excerpts] };
}

// Other attachments are previews of links that the text already has.
function isMessage(attachment: Attachment): boolean {
  const { is_share, is_msg_unfurl, is_app_unfurl, from_url, files = [] } = attachment;
  return is_share || is_msg_unfurl || is_app_unfurl || from_url === undefined || files.length > 0;
}

function readAttachment(attachment: Attachment, inherited = "", depth = 0): MessageContent {
  const { author_name, author_subname, author_id, message_blocks = [], attachments = [] } = attachment;
  const author = author_name || author_subname || author_id || inherited;
  const blocks = [
    ...attachment.blocks ?? [],
    ...message_blocks.flatMap(({ message }) => message?.blocks ?? []),
  ];
  const { text: body, files, unreadable } = readOwnContent({ ...attachment, blocks });
  const text = formatPlainText(formatParts(attachment, body)).trim();
  const kind = attachment.is_share ? "forwarded" : "quoted";
  const inner = depth < DEPTH_MAX ? attachments.map((one) => readAttachment(one, author, depth + 1)) : [];
  const isEmpty = text === "" && files.length + unreadable.length + attachments.length === 0;
  const own = createContent({
    files,
    excerpts: [{ kind, author, text }],
    unreadable: isEmpty ? [`a ${kind} message`] : unreadable,
  });
  return joinContents([own, ...inner]);
}

function formatParts(
  { pretext = "", title = "", title_link, fields = [], image_url = "", fallback = "" }: Attachment,
  body: string,
): string {
  const head = title_link === undefined || title === "" ? title : `<${title_link}|${title}>`;
  const rows = fields.map((field) => `${field.title ?? ""}: ${field.value ?? ""}`);
  const parts = [pretext, head, body, ...rows, image_url === "" ? "" : `<${image_url}>`];
  const text = parts.filter((part) => part.trim() !== "").join("\n");
  return text === "" && !NO_TEXT.test(fallback) ? fallback : text;
}

/** Finds the address of a file. Returns a noun for a file that the service cannot fetch. */
export function readFile(file: SlackFile): RemoteFile | string {
  const { id = "", title = "", size, mode = "", filetype = "", file_access = "" } = file;
  const name = file.name || title || "file";
  const shown = title || file.name ? ` ${title || file.name}` : "";
  if (mode === "tombstone") return "a deleted file";
  if (mode === "hidden_by_limit") return "a file that is older than the limit of the Slack plan";
  if (["access_denied", "file_not_found"].includes(file_access)) {
    return `the file${shown}, which the app cannot open`;
  }
  if ([mode, filetype].some((one) => ["quip", "canvas"].includes(one))) return `the canvas${shown}`;
  if ([mode, filetype].includes("list")) return `the list${shown}`;
  if (mode === "external" || file.is_external === true) {
    return `the file${shown}, which is not stored in Slack`;
  }
  const url = file_access === "check_file_info" ? undefined : file.url_private_download ?? file.url_private;
  if (url === undefined && id === "") return `the file${shown}`;
  return { ref: url ?? id, name, size: parseSize(size) };
}
