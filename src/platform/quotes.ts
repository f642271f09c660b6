import { countBytes, cutToBytes } from "../base/bytes.ts";
import { createLogger } from "../base/log.ts";
import type { Excerpt, IncomingMessage } from "./platform.ts";

const log = createLogger("platform");
// Slack and Feishu expect the acknowledgement of a message within 3 s. The service acknowledges only after this request.
const READ_MS = 2_000;
const EXCERPTS_MAX = 50;
const EXCERPTS_MAX_BYTES = 64 * 1024;
const QUOTED_FILES_MAX = 20;

/** Content of a message, without its place and sender. */
export type MessageContent = Pick<IncomingMessage, "text" | "files" | "excerpts" | "unreadable">;

export function createContent(content: Partial<MessageContent> = {}): MessageContent {
  return { text: "", files: [], excerpts: [], unreadable: [], ...content };
}

export function isEmpty({ text, files, excerpts, unreadable }: MessageContent): boolean {
  return text.trim() === "" && files.length + excerpts.length + unreadable.length === 0;
}

/** Reads a message. If the form of the message is unknown, keeps `text` and names the message as partly unreadable. */
export function readOrNote(platform: string, text: unknown, read: () => MessageContent): MessageContent {
  try {
    const content = read();
    requireTexts(content);
    return content;
  } catch (error) {
    log.warning("Cannot read a part of a message of {platform}: {error}", { platform, error });
    return createContent({
      text: typeof text === "string" ? text : "",
      unreadable: ["a part of the message"],
    });
  }
}

// A field of another type would make the store fail, and the platform would send the message again and again.
function requireTexts({ text, files, excerpts, unreadable }: MessageContent): void {
  const texts: unknown[] = [
    text,
    ...unreadable,
    ...files.flatMap(({ ref, name }) => [ref, name]),
    ...excerpts.flatMap((excerpt) => [excerpt.author, excerpt.text]),
  ];
  if (!texts.every((one) => typeof one === "string")) throw new Error("a text has another type");
}

/** Joins quoted or forwarded messages and their files. */
export function joinContents(contents: readonly MessageContent[]): MessageContent {
  return {
    text: "",
    files: contents.flatMap(({ files }) => files),
    excerpts: contents.flatMap(({ excerpts }) => excerpts),
    unreadable: contents.flatMap(({ unreadable }) => unreadable),
  };
}

/** Adds quoted or forwarded messages and their files to a message. Adds whatever exceeds a limit to `unreadable`. */
export function addExcerpts<T extends MessageContent>(message: T, added: MessageContent): T {
  const all = [...message.excerpts, ...added.excerpts];
  const excerpts = cutExcerpts(all);
  const isCut = excerpts.length < all.length || excerpts.some(({ text }, at) => text !== all[at]?.text);
  const unreadable = [
    ...message.unreadable,
    ...added.unreadable,
    ...isCut ? ["the rest of the quoted messages"] : [],
    ...added.files.length > QUOTED_FILES_MAX ? ["the rest of the quoted files"] : [],
  ];
  return {
    ...message,
    files: [...message.files, ...added.files.slice(0, QUOTED_FILES_MAX)],
    excerpts,
    unreadable: [...new Set(unreadable)],
  };
}

function cutExcerpts(given: readonly Excerpt[]): Excerpt[] {
  let bytes = EXCERPTS_MAX_BYTES;
  return given.slice(0, EXCERPTS_MAX).map((excerpt) => {
    const text = cutToBytes(excerpt.text, bytes);
    bytes -= countBytes(text);
    return { ...excerpt, text };
  });
}

/** Requests a quoted message. Returns null when the request fails or takes more than 2 s, because the message itself must not be lost. */
export async function readQuoted<T>(
  platform: string,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const ended = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${READ_MS} ms`)), READ_MS);
  try {
    return await Promise.race([read(ended.signal), late]);
  } catch (error) {
    log.info("Cannot read a quoted message of {platform}: {error}", { platform, error });
    return null;
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}
