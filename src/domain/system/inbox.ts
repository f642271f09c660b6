import { z } from "zod";
import { line, NAME_MAX_BYTES, queryTime, time } from "../call/field.ts";
import { INBOX_KINDS, type InboxKind, type Scope } from "../call/vocabulary.ts";

const kind = z.enum(INBOX_KINDS);

/** An item that needs a person (contract 17). Absent references are "". */
export const inboxItemSchema = z.strictObject({
  kind,
  id: z.string().meta({
    description:
      "of the run, message, reply, question, task, budget or worker; the name of an engine, a launcher or a secret",
  }),
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

/** Returns the scope that a caller needs to see items of a kind. Only people who may change secrets see their names. */
export function getInboxScope(kind: InboxKind): Scope {
  if (kind === "secret_lost") return "write:secrets";
  return kind === "launcher_paused" ? "read:runners" : "read:tasks";
}

export const INBOX_SINCE_DEFAULT_MS = 86_400_000;

export const INBOX_KIND_MAX = 100;

/** Characters of an instruction or a message in an item. */
export const INBOX_TITLE_MAX = 200;

export const inboxItemParams = { kind, id: line(NAME_MAX_BYTES) };

export const inboxDismissSchema = z.strictObject({
  until: time.nullable().default(null)
    .meta({
      description: "Unix ms; the item appears again from then on. Default: never, only for failures",
    }),
});

export const inboxDismissalSchema = z.strictObject({
  kind,
  id: z.string(),
  until: time.nullable(),
}).meta({ id: "InboxDismissal" });
export type InboxDismissal = z.output<typeof inboxDismissalSchema>;

export const inboxQuery = {
  since: queryTime.optional().meta({ description: "Unix ms, for failures; default: 24 hours ago" }),
};
