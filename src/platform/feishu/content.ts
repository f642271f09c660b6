import type { RemoteFile } from "../platform.ts";
import { createContent, isEmpty, type MessageContent, readOrNote } from "../quotes.ts";
import { parseJsonObject } from "../request.ts";
import { formatCard } from "./received_card.ts";

/** A mention. Its `id` is an object in an event and a string in a requested message. */
export interface Mention {
  key: string;
  id: { open_id?: string } | string;
  name: string;
}

interface MessageBody {
  /** Ids of the messages that may have the files. */
  sources: readonly string[];
  type: string;
  /** Content as JSON. */
  content: string;
  mentions?: readonly Mention[] | undefined;
}

interface Post {
  title?: string;
  content?: PostElement[][];
}

interface PostElement {
  tag: string;
  text?: string;
  href?: string;
  user_id?: string;
  user_name?: string;
  language?: string;
  image_key?: string;
  file_key?: string;
  emoji_type?: string;
}

interface Content extends Post {
  text?: string;
  image_key?: string;
  file_key?: string;
  file_name?: string;
  name?: string;
  latitude?: string;
  longitude?: string;
  summary?: string | Post;
  start_time?: string;
  end_time?: string;
  due_time?: string;
  topic?: string;
  options?: string[];
  template?: string;
}

/** Nouns for types without a text. */
const NOUNS: Record<string, string> = {
  sticker: "a sticker",
  folder: "a folder",
  share_chat: "a shared group",
  share_user: "a shared contact",
  hongbao: "a red packet",
  interactive: "a card",
  merge_forward: "a forwarded conversation",
  image: "a picture",
  audio: "a voice message",
  media: "a video",
  file: "a file",
  location: "a location",
  calendar: "a calendar event",
  general_calendar: "a calendar event",
  share_calendar_event: "a calendar event",
  video_chat: "a video call",
  todo: "a task",
  vote: "a vote",
  system: "a system message",
};

/** Reads the content of a message. Removes the mentions `ours`, those of the bot, from the text. */
export function readContent(body: MessageBody, ours: readonly string[] = []): MessageContent {
  const { type, mentions = [] } = body;
  const content = readOrNote("Feishu", "", () => readType(body));
  const text = content.text.replace(/@_user_\d+|@_all\b/g, (key) => {
    if (ours.includes(key)) return "";
    return key === "@_all" ? "@all" : `@${mentions.find((one) => one.key === key)?.name ?? key}`;
  });
  content.text = text.trim() || content.text.trim();
  if (isEmpty(content) && !["text", "post"].includes(type)) {
    content.unreadable.push(NOUNS[type] ?? `a message of the type ${type}`);
  }
  return content;
}

function readType({ sources, type, content }: MessageBody): MessageContent {
  const said = parseJsonObject<Content>(content);
  const listFile = (key: string | undefined, kind: "image" | "file", name: string): RemoteFile[] => {
    if (key === undefined) return [];
    const paths = sources.map((id) => `${id}/resources/${encodeURIComponent(key)}?type=${kind}`);
    return [{ ref: paths.join(" "), name, size: null }];
  };
  switch (type) {
    case "text":
      return createContent({ text: said.text ?? "" });
    case "image":
      return createContent({ files: listFile(said.image_key, "image", "image.png") });
    case "audio":
      return createContent({ files: listFile(said.file_key, "file", "audio.opus") });
    case "file":
    case "media":
      return createContent({ files: listFile(said.file_key, "file", said.file_name || "file") });
    case "post": {
      const post = findPost(said);
      const elements = (post.content ?? []).flat();
      const files = elements.flatMap((one) => [
        ...listFile(one.tag === "img" ? one.image_key : undefined, "image", "image.png"),
        ...listFile(one.tag === "media" ? one.file_key : undefined, "file", "video.mp4"),
      ]);
      return createContent({ text: formatPost(post), files });
    }
    case "interactive":
      return formatCard(said);
  }
  return createContent({ text: formatFacts(type, said) });
}

/** Formats a message that consists of fields, such as a location. Returns "" for another type. */
function formatFacts(type: string, said: Content): string {
  const { name = "", latitude, longitude, summary, start_time, end_time, due_time, topic = "" } = said;
  const place = latitude === undefined ? "" : ` (${latitude}, ${longitude})`;
  const times = [start_time, end_time].map(formatTime).filter((time) => time !== "").join(" to ");
  const time = times === "" ? "" : ` (${times})`;
  const due = formatTime(due_time);
  switch (type) {
    case "location":
      return name + place === "" ? "" : `Location: ${name}${place}`;
    case "calendar":
    case "general_calendar":
    case "share_calendar_event":
      return summary === undefined && time === "" ? "" : `Event: ${formatSummary(summary)}${time}`;
    case "video_chat":
      return topic === "" ? "" : `Video call: ${topic}${time}`;
    case "todo":
      return summary === undefined
        ? ""
        : `Task: ${formatSummary(summary)}${due === "" ? "" : ` (due ${due})`}`;
    case "vote":
      return topic === ""
        ? ""
        : [`Vote: ${topic}`, ...(said.options ?? []).map((one) => `- ${one}`)].join("\n");
    case "system":
      return fillTemplate(said.template ?? "", said as Record<string, unknown>);
  }
  return "";
}

function formatSummary(summary: Content["summary"]): string {
  return typeof summary === "object" ? formatPost(summary) : summary ?? "";
}

function fillTemplate(template: string, values: Record<string, unknown>): string {
  return template.replace(/\{(\w+)\}/g, (_all, key) => {
    const value = values[key];
    return Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : "";
  }).trim();
}

/** Formats a time in ms. */
function formatTime(time: string | undefined): string {
  const date = new Date(Number(time || NaN));
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}

const POST_DEPTH_MAX = 2;

/** Finds the post. Some messages have one post per language. */
function findPost(said: object, depth = 0): Post {
  if ("content" in said && Array.isArray(said.content)) return said as Post;
  if (depth === POST_DEPTH_MAX) return {};
  const inner = Object.values(said).filter((one) => typeof one === "object" && one !== null);
  return inner.map((one) => findPost(one, depth + 1)).find((post) => post.content !== undefined) ?? {};
}

function formatPost({ title = "", content = [] }: Post): string {
  return [title, ...content.map((line) => line.map(formatElement).join(""))].join("\n").trim();
}

function formatElement(element: PostElement): string {
  const { tag, text = "", href, user_id = "", user_name = "", language = "", emoji_type } = element;
  if (tag === "at") return user_id.startsWith("@_") ? user_id : `@${user_name || user_id}`;
  if (tag === "a") return href === undefined || href === text ? text : `${text} (${href})`;
  if (tag === "code_block") return `\`\`\`${language.toLowerCase()}\n${text.trimEnd()}\n\`\`\``;
  if (tag === "emotion") return `[${emoji_type ?? "emoji"}]`;
  return tag === "hr" ? "---" : text;
}
