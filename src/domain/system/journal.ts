import { z } from "zod";
import { id, listOf, sessionKeysFilter, textsOf, time, whole } from "../call/field.ts";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../call/page.ts";
import { EVENT_KINDS, type EventKind } from "../call/vocabulary.ts";

/** A journal entry before it has its number. Absent references are "". */
export interface JournalEntry {
  kind: EventKind;
  session_key?: string;
  worker_id?: string;
  task_id?: string;
  execution_id?: string;
  message_id?: string;
  /** Who did it: `user:<name>`, `token:<name>`, `worker:<id>`, `bee` or `system` (contract 9). */
  actor?: string;
  data?: Record<string, unknown>;
}

/** An event as the API shows it (contract 4, Journal). Absent references are "". */
export const eventSchema = z.strictObject({
  seq: z.int().meta({ description: "grows with every event" }),
  at: time,
  kind: z.enum(EVENT_KINDS),
  session_key: z.string(),
  worker_id: z.string(),
  task_id: z.string(),
  execution_id: z.string(),
  message_id: z.string(),
  actor: z.string(),
  data: z.record(z.string(), z.unknown()),
}).meta({ id: "Event" });

export type Event = z.output<typeof eventSchema>;

/** Query of GET /api/events (contract 4, Stream). */
export const eventListQuery = {
  after: whole(0, Number.MAX_SAFE_INTEGER).optional()
    .meta({ description: "only events after this number; without it a page has the latest ones" }),
  session_key: sessionKeysFilter.optional(),
  worker_id: listOf(id).optional(),
  task_id: listOf(id).optional(),
  kind: listOf(z.enum(EVENT_KINDS)).optional(),
  actor: textsOf().optional().meta({ description: "who did it, such as user:ada or token:ci" }),
  page_size: whole(1, PAGE_SIZE_MAX).default(PAGE_SIZE_DEFAULT)
    .meta({ type: "integer", minimum: 1, maximum: PAGE_SIZE_MAX, default: PAGE_SIZE_DEFAULT }),
};

export type EventFilter = z.output<z.ZodObject<typeof eventListQuery>>;
