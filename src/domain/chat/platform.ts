import { z } from "zod";
import { digest } from "../../base/bytes.ts";
import { parseChatSessionId } from "./chat.ts";
import { line, time } from "../call/field.ts";

const PLATFORM_STATES = ["off", "connecting", "connected", "limited", "down", "refused"] as const;
export type PlatformState = (typeof PLATFORM_STATES)[number];

export const PAIRING_LIFE_MS = 60 * 60 * 1000;

/** Open pairing codes per platform. A new one replaces the oldest. */
export const PAIRINGS_MAX = 20;

/** Strangers per platform that get an answer in a minute. Others get none, and can write again later. */
export const STRANGERS_PER_MINUTE_MAX = 5;

/** Length limit of the id of a chat or thread, because the id is part of a session key. */
export const PLACE_MAX_CHARACTERS = 100;

export const platformSchema = z.strictObject({
  name: z.string(),
  kind: z.string().meta({ description: "local, webhook, telegram, slack ..." }),
  state: z.enum(PLATFORM_STATES).meta({
    description: "off: disabled · refused: the platform refuses the key, see error · down: no answer",
  }),
  since: time,
  error: z.string(),
  last_event_at: time.nullable(),
  waiting: z.int().meta({ description: "undelivered replies" }),
  waiting_since: time.nullable(),
}).meta({ id: "Platform" });
export type PlatformStatus = z.output<typeof platformSchema>;

/** A paired person. */
export const senderSchema = z.strictObject({
  id: z.string(),
  name: z.string().meta({ description: "the name that the person chose, not verified" }),
  paired_by: z.string(),
  created_at: time,
}).meta({ id: "PlatformSender" });
export type Sender = z.output<typeof senderSchema>;

/** Body of POST /api/platforms/pair. Without `sender`, the answer only names the person with the code. */
export const pairSchema = z.strictObject({
  code: line(40),
  sender: line(400).optional().meta({
    description: "id of the person to allow, from an answer without sender",
  }),
}).meta({ id: "PlatformPair", examples: [{ code: "K7PX-2MRD" }] });
export type Pair = z.output<typeof pairSchema>;

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

interface ChatAddress {
  chat: string;
  /** Id of the thread, or "" without one. */
  thread: string;
}

/** Formats the session key of a conversation: `<platform>:<chat>[:<thread>]`. */
export function formatPlatformKey(platform: string, { chat, thread }: ChatAddress): string {
  return [platform, encode(chat), ...(thread === "" ? [] : [encode(thread)])].join(":");
}

/** Parses the place from a session key. */
export function parsePlace(sessionKey: string): ChatAddress {
  const [, chat = "", thread = ""] = sessionKey.split(":");
  return { chat: decode(chat), thread: decode(thread) };
}

const FOLDER_CHARACTERS = 32;

/** Names the folder for the files of a conversation. The ids of a platform can't be file names. */
export function formatPlaceFolder(sessionKey: string): string {
  return parseChatSessionId(sessionKey) ?? `platform-${digest(sessionKey).slice(0, FOLDER_CHARACTERS)}`;
}

/** Formats the service's id of a platform's message: `<chat>:<id>`. */
export function formatPlatformMessageId(chat: string, id: string): string {
  return `${encode(chat)}:${encode(id)}`;
}

/** Formats the id of a further file of a message, or of a press of one of the message's buttons. */
export function formatFurtherId(id: string, what: number | `click-${string}`): string {
  return `${id}#${what}`;
}

/** Parses the platform's own id from the service's id. */
export function parseOwnMessageId(platformMessageId: string): string {
  return decode(platformMessageId.split(":")[1] ?? "").replace(/#(\d+|click-.*)$/, "");
}

/**
 * Returns the platform's own id of an answered message. Returns "" if that message is in another chat, because a group that became a
 * supergroup numbers its messages anew.
 */
export function parseAnsweredId(platformMessageId: string | null | undefined, chat: string): string {
  if (!platformMessageId || decode(platformMessageId.split(":")[0] ?? "") !== chat) return "";
  return parseOwnMessageId(platformMessageId);
}

function encode(part: string): string {
  // A session key can't contain control characters either.
  return part.replace(/[%:\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => encodeURIComponent(character));
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
