import { z } from "zod";
import { content, CONTENT_MAX_BYTES, id, sessionKey } from "../call/field.ts";
import { ROUTING_RULES } from "../call/vocabulary.ts";

export const EXPLAINED_WORKERS_MAX = 100;

export const explainSchema = z.strictObject({
  session_key: sessionKey.optional().meta({ description: "the conversation of the message" }),
  content: content(CONTENT_MAX_BYTES),
}).meta({ id: "Explain", examples: [{ content: "@Ada write the news" }] });
export type Explain = z.output<typeof explainSchema>;

export const explanationSchema = z.strictObject({
  rule: z.enum(ROUTING_RULES).meta({
    description:
      "mention, the session's default worker, best match, the only worker, no worker (nobody); coordinator: its model decides",
  }),
  worker_id: id.nullable(),
  worker_name: z.string(),
  reason: z.string(),
  reply: z.string().meta({ description: "the reply when no worker is found" }),
  workers: z.array(z.strictObject({
    id,
    name: z.string(),
    paused: z.boolean(),
    score: z.int().meta({
      description: "words that the message shares with name, description and departments",
    }),
    words: z.array(z.string()),
  })).meta({ description: `best first, at most ${EXPLAINED_WORKERS_MAX}` }),
}).meta({ id: "Explanation" });
export type Explanation = z.output<typeof explanationSchema>;
