import { z } from "zod";
import { queryTime, time } from "../call/field.ts";
import { INBOX_KINDS } from "../call/vocabulary.ts";

/** An item that needs a person (contract 17). Absent references are "". */
export const inboxItemSchema = z.strictObject({
  kind: z.enum(INBOX_KINDS),
  at: time,
  title: z.string().meta({ description: "subject: an instruction, a message or a name" }),
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

export const INBOX_SINCE_DEFAULT_MS = 86_400_000;

export const INBOX_KIND_MAX = 100;

/** Characters of an instruction or a message in an item. */
export const INBOX_TITLE_MAX = 200;

export const inboxQuery = {
  since: queryTime.optional().meta({ description: "Unix ms, for failures; default: 24 hours ago" }),
};
