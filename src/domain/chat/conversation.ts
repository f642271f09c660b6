import { z } from "zod";
import { id, parseList, sessionKeysFilter, time } from "../call/field.ts";
import { buildPageQuery } from "../call/page.ts";

export const LATEST_TEXT_MAX = 200;

export const conversationSchema = z.strictObject({
  id: id.meta({
    description: "id of its latest message, or of the local session before the first; lists use it as cursor",
  }),
  session_key: z.string(),
  platform: z.string(),
  session_id: id.nullable().meta({ description: "id of a local conversation" }),
  name: z.string().meta({ description: "name of a local conversation; else empty" }),
  worker_id: id.nullable().meta({ description: "default worker" }),
  role: z.enum(["", "user", "bee"]).meta({
    description: "sender of the latest message; empty before the first",
  }),
  text: z.string().meta({ description: `the latest message, at most ${LATEST_TEXT_MAX} characters` }),
  updated_at: time.meta({ description: "when the latest message was stored" }),
  active_tasks: z.int(),
}).meta({ id: "Conversation" });
export type Conversation = z.output<typeof conversationSchema>;

export const conversationListQuery = {
  session_key: sessionKeysFilter.optional(),
  platform: parseList(z.string().min(1)).optional(),
  ...buildPageQuery(),
};
export type ConversationFilter = z.output<z.ZodObject<typeof conversationListQuery>>;
