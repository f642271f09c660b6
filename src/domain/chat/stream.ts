import { z } from "zod";
import { id, time } from "../call/field.ts";
import { mediaSchema } from "./message.ts";
import { CHAT_STATES, SOURCE_TYPES, STREAM_ENDS } from "../call/vocabulary.ts";

/** Data of `message`: a reply (contract 4, Stream). */
const streamMessageSchema = z.strictObject({
  id,
  role: z.literal("bee"),
  content: z.string(),
  ts: time,
  source_type: z.enum(SOURCE_TYPES),
  source_id: z.string(),
  worker_name: z.string(),
  media: mediaSchema.nullable(),
  reply_to: z.string(),
  question_id: id.nullable().meta({ description: "the question in the message" }),
}).meta({ id: "StreamMessage" });

/** Data of `status`: progress of the conversation. */
const streamStatusSchema = z.strictObject({
  state: z.enum(CHAT_STATES),
  worker_name: z.string(),
  task_id: id.nullable(),
}).meta({ id: "StreamStatus" });

/** Data of `reset`: the service does not know the client's number, so the client must drop its copy. */
const streamResetSchema = z.strictObject({ after: z.int() }).meta({ id: "StreamReset" });

/** Data of `end`, the last event. */
const streamEndSchema = z.strictObject({ reason: z.enum(STREAM_ENDS) }).meta({ id: "StreamEnd" });

/** Events of every stream, by name. */
export const STREAM_EVENTS = { reset: streamResetSchema, end: streamEndSchema };

/** Events of a conversation's stream, by name. */
export const CONVERSATION_EVENTS = {
  message: streamMessageSchema,
  status: streamStatusSchema,
  ...STREAM_EVENTS,
};
