import { z } from "zod";
import { id, listOf, sessionKeysFilter, time } from "../call/field.ts";
import { pageQuery } from "../call/page.ts";

/** How much of its latest message a conversation shows, in characters. */
export const LATEST_TEXT_MAX = 200;

/** A conversation of any platform (contract 17.6). */
export const conversationSchema = z.strictObject({
  id: id.meta({
    description: "of its latest message, or of the local session before the first; lists go by it",
  }),
  session_key: z.string(),
  platform: z.string(),
  session_id: id.nullable().meta({ description: "of a local conversation" }),
  name: z.string().meta({ description: "of a local conversation; else empty" }),
  worker_id: id.nullable().meta({ description: "its default worker" }),
  role: z.enum(["", "user", "bee"]).meta({ description: "who spoke last; empty before the first message" }),
  text: z.string().meta({ description: `the latest message, at most ${LATEST_TEXT_MAX} characters` }),
  updated_at: time.meta({ description: "when the latest message was stored" }),
  active_tasks: z.int(),
}).meta({ id: "Conversation" });

export type Conversation = z.output<typeof conversationSchema>;

/** Query of GET /api/conversations. */
export const conversationListQuery = {
  session_key: sessionKeysFilter.optional(),
  platform: listOf(z.string().min(1)).optional(),
  ...pageQuery(),
};

export type ConversationFilter = z.output<z.ZodObject<typeof conversationListQuery>>;
