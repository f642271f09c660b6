import { z } from "zod";
import {
  CONTENT_MAX_BYTES,
  id,
  ignoreFields,
  nameText,
  parseFlagOr,
  parseIntegerOr,
  refFilter,
  text,
  time,
} from "../call/field.ts";
import { mediaSchema } from "./message.ts";
import { buildPageQuery } from "../call/page.ts";
import { CHAT_ROLES } from "../call/vocabulary.ts";

const SESSION_NAME_DEFAULT = "New session";

export const HISTORY_MAX = 1_000;

export const chatSessionSchema = z.strictObject({
  id,
  name: z.string(),
  worker_id: id.nullable().meta({ description: "default worker" }),
  created_at: time,
  updated_at: time,
}).meta({ id: "LocalSession" });
export type ChatSession = z.output<typeof chatSessionSchema>;

export const chatCreateSchema = z.strictObject({
  name: nameText().default(SESSION_NAME_DEFAULT),
  worker_id: id.nullable().default(null),
}).meta({ id: "LocalSessionCreate", examples: [{ name: "Ideas" }] });
export type ChatCreate = z.output<typeof chatCreateSchema>;

/** An empty `worker_id` removes the default worker. */
export const chatUpdateSchema = z.strictObject({
  name: nameText(),
  worker_id: z.union([id, z.literal("")]).nullable(),
  ...ignoreFields("id", "created_at", "updated_at"),
}).partial().meta({ id: "LocalSessionUpdate", examples: [{ name: "Plans" }] });
export type ChatUpdate = z.output<typeof chatUpdateSchema>;

export const chatListQuery = {
  last: parseFlagOr(false, "only the session of the caller's latest message"),
  ref: refFilter.optional(),
  ...buildPageQuery(),
};
export type ChatFilter = z.output<z.ZodObject<typeof chatListQuery>>;

/** Empty content requires media (contract 3, Local chat). */
export const chatSendSchema = z.strictObject({
  content: text(CONTENT_MAX_BYTES),
  media_path: text(4_000).optional(),
  reply_to: id.optional().meta({
    description: "the message that this one replies to; a reply to a question answers the question",
  }),
  alone: z.boolean().default(false).meta({
    description: "routed immediately, not merged with other messages",
  }),
}).meta({ id: "LocalMessageCreate", examples: [{ content: "What is new?" }] });
export type ChatSend = z.output<typeof chatSendSchema>;

/** The service stored the message. The reply arrives on the stream. */
export const queuedSchema = z.strictObject({ status: z.literal("queued"), message_id: id }).meta({
  id: "Queued",
});
export type QueuedMessage = z.output<typeof queuedSchema>;

export const chatMessageSchema = z.strictObject({
  id,
  role: z.enum(CHAT_ROLES),
  content: z.string(),
  ts: time,
  media: mediaSchema.nullable(),
  reply_to: z.string().nullable().meta({
    description: "the message that a reply answers; null for a user's message",
  }),
  question_id: id.nullable().meta({ description: "the question in the message" }),
}).meta({ id: "LocalMessage" });
export type ChatMessage = z.output<typeof chatMessageSchema>;

export const historyQuery = {
  before: id.optional().meta({ description: "only messages before this one" }),
  limit: parseIntegerOr(HISTORY_MAX, [1, HISTORY_MAX]),
};

const PREFIX = "local:";

export function buildChatSessionKey(sessionId: string): string {
  return PREFIX + sessionId;
}

/** Returns the local session of a session key, or null. */
export function parseChatSessionId(sessionKey: string): string | null {
  return sessionKey.startsWith(PREFIX) ? sessionKey.slice(PREFIX.length) : null;
}
