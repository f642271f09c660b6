import { z } from "zod";
import { queryTime, time } from "../call/field.ts";
import { INBOX_KINDS } from "../call/vocabulary.ts";

/** Something that needs a person (contract 17). Absent references are "". */
export const inboxItemSchema = z.strictObject({
  kind: z.enum(INBOX_KINDS),
  at: time,
  title: z.string().meta({ description: "what it is about: an instruction, a message, a name" }),
  detail: z.string().meta({ description: "what is wrong" }),
  worker_id: z.string(),
  worker_name: z.string(),
  execution_id: z.string(),
  message_id: z.string(),
  session_key: z.string(),
  engine: z.string(),
  question_id: z.string(),
  task_id: z.string(),
  budget_id: z.string(),
}).meta({ id: "InboxItem" });

export type InboxItem = z.output<typeof inboxItemSchema>;

/** How far back failures are told when nothing is said. */
export const INBOX_SINCE_DEFAULT_MS = 86_400_000;

/** Most items of one kind. */
export const INBOX_KIND_MAX = 100;

/** Characters of an instruction or a message that an item shows. */
export const INBOX_TITLE_MAX = 200;

/** Query of GET /api/inbox. */
export const inboxQuery = {
  since: queryTime.optional().meta({
    description: "Unix ms, for failures; 24 hours ago when it is left out",
  }),
};
