import { z } from "zod";
import {
  content,
  CONTENT_MAX_BYTES,
  id,
  line,
  parseList,
  queryTime,
  refFilter,
  sessionKeysFilter,
  textFilter,
  time,
  truncated,
} from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";
import { API_PLATFORM, LOCAL_PLATFORM, messageId } from "../call/message_id.ts";
import {
  INBOUND_STATUSES,
  OUTBOUND_STATUSES,
  ROUTED_TO,
  SOURCE_TYPES,
  type SourceType,
} from "../call/vocabulary.ts";

export const mediaSchema = z.strictObject({
  path: z.string(),
  name: z.string().meta({ description: "name on the disk, in ASCII" }),
  original_name: z.string().meta({
    description: "the sender's name of the file, without its path and control characters",
  }),
  size: z.int(),
  mime: z.string(),
}).meta({ id: "Media" });
export type Media = z.output<typeof mediaSchema>;

export const inboundSchema = z.strictObject({
  id,
  session_key: z.string(),
  platform: z.string(),
  platform_message_id: z.string(),
  sender: z.string(),
  sender_name: z.string().meta({ description: "self-chosen name; empty on local" }),
  content: z.string(),
  media: mediaSchema.nullable(),
  status: z.enum(INBOUND_STATUSES),
  merged_into: id.nullable(),
  routed: z.enum(ROUTED_TO).meta({ description: "recipient (task, reply, nobody); empty until routed" }),
  error: z.string(),
  attempt: z.int(),
  received_at: time,
  processed_at: time.nullable(),
  truncated,
}).meta({ id: "InboundMessage" });
export type InboundMessage = z.output<typeof inboundSchema>;

export const outboundSchema = z.strictObject({
  id,
  session_key: z.string(),
  platform: z.string(),
  message_id: z.string(),
  content: z.string(),
  media: mediaSchema.nullable(),
  status: z.enum(OUTBOUND_STATUSES),
  source_type: z.enum(SOURCE_TYPES),
  source_id: z.string(),
  question_id: z.string().meta({ description: "the question in the message; else empty" }),
  attempt: z.int(),
  error: z.string(),
  next_attempt_at: time.nullable().meta({ description: "next delivery attempt; null when sent or given up" }),
  created_at: time,
  sent_at: time.nullable(),
  truncated,
}).meta({ id: "OutboundMessage" });
export type OutboundMessage = z.output<typeof outboundSchema>;

/** A further reply to a message. */
export const messageSendSchema = z.strictObject({
  message_id: messageId,
  content: content(CONTENT_MAX_BYTES),
}).meta({
  id: "MessageSend",
  examples: [{ message_id: "01a1fd23-4a4c-746f-99ac-8860e2641168", content: "Half done" }],
});

/** Text fields of the form for POST /api/messages. The field `file` has the file. */
export const messageFormSchema = messageSendSchema.extend({
  content: messageSendSchema.shape.content.optional(),
});

export const RESEND_MAX = 1_000;

/** Resends the undelivered messages of a platform (contract 10.3). */
export const resendSchema = z.strictObject({
  platform: line(400),
  since: time.optional().meta({ description: "stored at or after, Unix ms; default: all" }),
}).meta({ id: "Resend", examples: [{ platform: "phone", since: 1_767_225_600_000 }] });
export type Resend = z.output<typeof resendSchema>;

export const resentSchema = z.strictObject({ resent: z.int(), more: z.boolean() }).meta({ id: "Resent" });
export type ResendResult = z.output<typeof resentSchema>;

export type MessageSend = z.output<typeof messageFormSchema>;

export const inboundListQuery = {
  ref: refFilter.optional(),
  session_key: sessionKeysFilter.optional(),
  platform: parseList(z.string().min(1)).optional(),
  status: parseList(z.enum(INBOUND_STATUSES)).optional(),
  text: textFilter.optional(),
  received_from: queryTime.optional(),
  received_to: queryTime.optional(),
  ...buildPageQuery(),
};

export const outboundListQuery = {
  ref: refFilter.optional(),
  session_key: sessionKeysFilter.optional(),
  platform: parseList(z.string().min(1)).optional(),
  status: parseList(z.enum(OUTBOUND_STATUSES)).optional(),
  source_type: parseList(z.enum(SOURCE_TYPES)).optional(),
  source_id: parseList(z.string().min(1)).optional(),
  text: textFilter.optional(),
  sent_from: queryTime.optional(),
  sent_to: queryTime.optional(),
  ...buildPageQuery(),
};

export type InboundFilter = z.output<z.ZodObject<typeof inboundListQuery>>;
export type OutboundFilter = z.output<z.ZodObject<typeof outboundListQuery>>;

export interface Reply {
  id: string;
  session_key: string;
  platform: string;
  message_id: string;
  content: string;
  media?: Media | null;
  source_type: SourceType;
  source_id: string;
  /** The run that sends the reply, or "". */
  execution_id?: string;
  /** The question in the reply, or "". */
  question_id?: string;
}

/** Builds the stored form of a reply. Locally and for API clients the row is the delivery; elsewhere the outbox delivers it. */
export function buildOutbound(reply: Reply, now: number) {
  const local = reply.platform === LOCAL_PLATFORM || reply.platform === API_PLATFORM;
  return {
    media: null,
    execution_id: "",
    question_id: "",
    ...reply,
    status: local ? "sent" as const : "failed" as const,
    created_at: now,
    sent_at: local ? now : null,
    due_at: local ? null : now,
  };
}

/** Returns whether replies have a conversation. The result of a script's own task stays on its execution (contract 3, Task). */
export function hasConversation(sessionKey: string): boolean {
  return !sessionKey.startsWith(SCRIPT_PREFIX);
}

const SCRIPT_PREFIX = "cli:";

/** Returns whether a conversation belongs to a client of /v1, which waits for the reply and answers no questions. */
export function isApiConversation(sessionKey: string): boolean {
  return sessionKey.startsWith(`${API_PLATFORM}:`);
}

/** Returns when a question expires: immediately in the conversation of a client of /v1. */
export function computeExpiry(sessionKey: string, timeoutMs: number, now: number): number {
  return isApiConversation(sessionKey) ? now : now + timeoutMs;
}

/** Returns the session key of a task whose message id names no stored message. */
export function buildScriptSessionKey(messageId: string): string {
  return SCRIPT_PREFIX + messageId;
}

/** Returns the platform in a session key. Use it only when no message names the platform. */
export function parsePlatformName(sessionKey: string): string {
  return sessionKey.slice(0, Math.max(0, sessionKey.indexOf(":"))) || LOCAL_PLATFORM;
}
