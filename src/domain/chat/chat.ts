import { z } from "zod";
import { CONTENT_MAX_BYTES, flag, id, nameText, refFilter, text, time, whole } from "../call/field.ts";
import { mediaSchema } from "./message.ts";
import { pageQuery } from "../call/page.ts";
import { CHAT_ROLES } from "../call/vocabulary.ts";

const SESSION_NAME_DEFAULT = "New session";

/** Most messages that a history answers at once (contract 3, Local chat). */
export const HISTORY_MAX = 1_000;

/** A local chat session (interface 2, Local session; contract 3, Local chat). */
export const chatSessionSchema = z.strictObject({
  id,
  name: z.string(),
  worker_id: id.nullable().meta({ description: "its default worker" }),
  created_at: time,
  updated_at: time,
}).meta({ id: "LocalSession" });

export type ChatSession = z.output<typeof chatSessionSchema>;

/** Body of POST /api/local/sessions. */
export const chatCreateSchema = z.strictObject({
  name: nameText().default(SESSION_NAME_DEFAULT),
  worker_id: id.nullable().default(null),
}).meta({ id: "LocalSessionCreate", examples: [{ name: "Ideas" }] });

export type ChatCreate = z.output<typeof chatCreateSchema>;

/** Body of PUT /api/local/sessions/:id; `worker_id: ""` removes the default worker. */
export const chatUpdateSchema = z.strictObject({
  name: nameText(),
  worker_id: z.union([id, z.literal("")]).nullable(),
  id: z.unknown(),
  created_at: z.unknown(),
  updated_at: z.unknown(),
}).partial().meta({ id: "LocalSessionUpdate", examples: [{ name: "Plans" }] });

export type ChatUpdate = z.output<typeof chatUpdateSchema>;

/** Query of GET /api/local/sessions (contract 8.8, contract 8.11). */
export const chatListQuery = {
  last: flag.default(false).meta({
    type: "boolean",
    default: false,
    description: "only the one in which the caller spoke last",
  }),
  ref: refFilter.optional(),
  ...pageQuery(),
};

export type ChatFilter = z.output<z.ZodObject<typeof chatListQuery>>;

/** Body of POST /api/local/sessions/:id/messages. Content may be empty only with media (contract 3, Local chat). */
export const chatSendSchema = z.strictObject({
  content: text(CONTENT_MAX_BYTES),
  media_path: text(4_000).optional(),
  reply_to: id.optional().meta({
    description: "the message that it replies to; a reply to a question answers it",
  }),
  alone: z.boolean().default(false).meta({ description: "read at once, and merged with no other message" }),
}).meta({ id: "LocalMessageCreate", examples: [{ content: "What is new?" }] });

export type ChatSend = z.output<typeof chatSendSchema>;

/** Answer to a message: it is stored, and its reply comes on the stream (contract 3, Local chat). */
export const queuedSchema = z.strictObject({ status: z.literal("queued"), message_id: id }).meta({
  id: "Queued",
});

export type Queued = z.output<typeof queuedSchema>;

/** One message of a chat history (interface 2, Local chat message). */
export const chatMessageSchema = z.strictObject({
  id,
  role: z.enum(CHAT_ROLES),
  content: z.string(),
  ts: time,
  media: mediaSchema.nullable(),
  reply_to: z.string().nullable().meta({
    description: "the message that a reply answers; null for what the user said",
  }),
  question_id: id.nullable().meta({ description: "the question that it asks" }),
}).meta({ id: "LocalMessage" });

export type ChatMessage = z.output<typeof chatMessageSchema>;

export const historyQuery = {
  before: id.optional().meta({ description: "only what came before this message" }),
  limit: whole(1, HISTORY_MAX).default(HISTORY_MAX)
    .meta({ type: "integer", minimum: 1, maximum: HISTORY_MAX, default: HISTORY_MAX }),
};

const PREFIX = "local:";

/** The session key of a local session. */
export function chatSessionKey(sessionId: string): string {
  return PREFIX + sessionId;
}

/** The local session behind a session key, or null. */
export function chatSessionId(sessionKey: string): string | null {
  return sessionKey.startsWith(PREFIX) ? sessionKey.slice(PREFIX.length) : null;
}
