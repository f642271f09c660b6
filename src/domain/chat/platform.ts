import { z } from "zod";
import { digest } from "../../base/bytes.ts";
import { chatSessionId } from "./chat.ts";
import { line, time } from "../call/field.ts";

/** How the connection to a platform is (contract 10.4). */
const PLATFORM_STATES = ["off", "connecting", "connected", "limited", "down", "refused"] as const;
export type PlatformState = (typeof PLATFORM_STATES)[number];

/** How long a pairing code counts (contract 10). */
export const PAIRING_LIFE_MS = 60 * 60 * 1000;

/** Strangers with an open code, by platform; the oldest gives way. */
export const PAIRINGS_MAX = 20;

/** Strangers of a platform who are answered in a minute; more get no answer, and may say it again later. */
export const STRANGERS_PER_MINUTE_MAX = 5;

/** Longest id of a chat or thread, in characters. Longer ones are refused: a session key has to hold them. */
export const PLACE_MAX_CHARACTERS = 100;

/** A platform as the API shows it (contract 10). */
export const platformSchema = z.strictObject({
  name: z.string(),
  kind: z.string().meta({ description: "local, webhook, telegram, slack ..." }),
  state: z.enum(PLATFORM_STATES).meta({
    description: "off: switched off · refused: its key does not count, see error · down: it does not answer",
  }),
  since: time,
  error: z.string(),
  last_event_at: time.nullable(),
  waiting: z.int().meta({ description: "replies that wait for their delivery" }),
  waiting_since: time.nullable(),
}).meta({ id: "Platform" });

export type PlatformShown = z.output<typeof platformSchema>;

/** Somebody who may speak on a platform, because they were paired. */
export const senderSchema = z.strictObject({
  id: z.string(),
  name: z.string().meta({ description: "as they called themselves; anybody can choose any" }),
  paired_by: z.string(),
  created_at: time,
}).meta({ id: "PlatformSender" });

export type Sender = z.output<typeof senderSchema>;

/** Body of POST /api/platforms/pair: without `sender` it only says who has the code. */
export const pairSchema = z.strictObject({
  code: line(40),
  sender: line(400).optional().meta({ description: "the id that was shown, to allow it" }),
}).meta({ id: "PlatformPair", examples: [{ code: "K7PX-2MRD" }] });

export type Pair = z.output<typeof pairSchema>;

/** Whose code it is. */
export const pairingSchema = z.strictObject({
  platform: z.string(),
  sender: z.string(),
  name: z.string(),
  expires_at: time,
  paired: z.boolean(),
}).meta({ id: "PlatformPairing" });

export type Pairing = z.output<typeof pairingSchema>;

/** Answer of POST /api/platforms/:name/test. */
export const platformTestSchema = z.strictObject({ ok: z.boolean(), detail: z.string() }).meta({
  id: "PlatformTest",
});

export type PlatformTest = z.output<typeof platformTestSchema>;

/** A place in a platform. */
export interface Place {
  chat: string;
  /** "" outside of threads. */
  thread: string;
}

/** The session key of a conversation on a platform: `<platform>:<chat>[:<thread>]` (contract 10). */
export function platformKey(platform: string, { chat, thread }: Place): string {
  return [platform, encoded(chat), ...(thread === "" ? [] : [encoded(thread)])].join(":");
}

/** Where the conversation of a session key is. */
export function placeOf(sessionKey: string): Place {
  const [, chat = "", thread = ""] = sessionKey.split(":");
  return { chat: decoded(chat), thread: decoded(thread) };
}

const FOLDER_CHARACTERS = 32;

/** The folder of a conversation's files; what it is called there has no place in a file system. */
export function placeFolder(sessionKey: string): string {
  return chatSessionId(sessionKey) ?? `platform-${digest(sessionKey).slice(0, FOLDER_CHARACTERS)}`;
}

/** What a platform's message is called here: `<chat>:<id>` (contract 10). */
export function platformMessageId(chat: string, id: string): string {
  return `${encoded(chat)}:${encoded(id)}`;
}

/** What a further file of a message is called, and the press of one of its buttons. */
export function furtherId(id: string, what: number | `click-${string}`): string {
  return `${id}#${what}`;
}

/** What the platform itself calls the message. */
export function ownMessageId(platformMessageId: string): string {
  return decoded(platformMessageId.split(":")[1] ?? "").replace(/#(\d+|click-.*)$/, "");
}

function encoded(part: string): string {
  // Also what a session key cannot hold.
  return part.replace(/[%:\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => encodeURIComponent(character));
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
