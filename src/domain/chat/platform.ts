import { z } from "zod";
import { digest } from "../../base/bytes.ts";
import { chatSessionId } from "./chat.ts";
import { line, time } from "../call/field.ts";

const PLATFORM_KINDS = [
  "local",
  "webhook",
  "telegram",
  "slack",
  "feishu",
  "dingtalk",
  "discord",
  "wecom",
] as const;
export type PlatformKind = (typeof PLATFORM_KINDS)[number];

/** States of the connection to a platform (contract 10.4). */
const PLATFORM_STATES = ["off", "connecting", "connected", "limited", "down", "refused"] as const;
export type PlatformState = (typeof PLATFORM_STATES)[number];

export const PAIRING_LIFE_MS = 60 * 60 * 1000;

/** Limit of strangers with an open code, per platform. A new one replaces the oldest. */
export const PAIRINGS_MAX = 20;

/** Limit of strangers per platform and minute who get a reply. The others may write again later. */
export const STRANGERS_PER_MINUTE_MAX = 5;

/** Longest id of a chat or thread, in characters. The service refuses longer ones: a session key has to contain them. */
export const PLACE_MAX_CHARACTERS = 100;

export const platformSchema = z.strictObject({
  name: z.string(),
  kind: z.enum(PLATFORM_KINDS),
  state: z.enum(PLATFORM_STATES).meta({
    description: "off: disabled · refused: invalid key, see error · down: no response",
  }),
  since: time,
  error: z.string(),
  last_event_at: time.nullable(),
  waiting: z.int().meta({ description: "replies that wait for delivery" }),
  waiting_since: time.nullable(),
}).meta({ id: "Platform" });
export type PlatformShown = z.output<typeof platformSchema>;

/** A paired person, who may write on a platform. */
export const senderSchema = z.strictObject({
  id: z.string(),
  name: z.string().meta({ description: "self-chosen name, not verified" }),
  paired_by: z.string(),
  created_at: time,
}).meta({ id: "PlatformSender" });
export type Sender = z.output<typeof senderSchema>;

/** Without `sender` the response only shows the sender of the code. */
export const pairSchema = z.strictObject({
  code: line(40),
  sender: line(400).optional().meta({ description: "the sender to allow, as the first response named it" }),
}).meta({ id: "PlatformPair", examples: [{ code: "K7PX-2MRD" }] });
export type Pair = z.output<typeof pairSchema>;

/** The sender of a code. */
export const pairingSchema = z.strictObject({
  platform: z.string(),
  sender: z.string(),
  name: z.string(),
  expires_at: time,
  paired: z.boolean(),
}).meta({ id: "PlatformPairing" });
export type Pairing = z.output<typeof pairingSchema>;

export const platformTestSchema = z.strictObject({ ok: z.boolean(), detail: z.string() }).meta({
  id: "PlatformTest",
});
export type PlatformTest = z.output<typeof platformTestSchema>;

/** Address of a conversation on a platform. */
export interface Place {
  chat: string;
  /** "" outside of threads. */
  thread: string;
}

/** Formats the session key of a conversation on a platform: `<platform>:<chat>[:<thread>]` (contract 10). */
export function platformKey(platform: string, { chat, thread }: Place): string {
  return [platform, encodePart(chat), ...(thread === "" ? [] : [encodePart(thread)])].join(":");
}

/** Parses the chat and thread of a session key. */
export function placeOf(sessionKey: string): Place {
  const [, chat = "", thread = ""] = sessionKey.split(":");
  return { chat: decodePart(chat), thread: decodePart(thread) };
}

const FOLDER_CHARACTERS = 32;

/** Returns the folder name for a conversation's files. The name contains no text of the platform. */
export function placeFolder(sessionKey: string): string {
  return chatSessionId(sessionKey) ?? `platform-${digest(sessionKey).slice(0, FOLDER_CHARACTERS)}`;
}

/** Formats the id of a platform's message: `<chat>:<id>` (contract 10). */
export function platformMessageId(chat: string, id: string): string {
  return `${encodePart(chat)}:${encodePart(id)}`;
}

/** Formats the id of a message's further file or of a button click. */
export function furtherId(id: string, what: number | `click-${string}`): string {
  return `${id}#${what}`;
}

/** Returns the platform's own id of a message. */
export function ownMessageId(platformMessageId: string): string {
  return decodePart(platformMessageId.split(":")[1] ?? "").replace(/#(\d+|click-.*)$/, "");
}

function encodePart(part: string): string {
  // Also escapes characters that a session key cannot contain.
  return part.replace(/[%:\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => encodeURIComponent(character));
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
