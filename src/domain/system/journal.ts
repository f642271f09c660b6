import { z } from "zod";
import {
  id,
  parseInteger,
  parseIntegerOr,
  parseList,
  parseTextList,
  sessionKeysFilter,
  time,
} from "../call/field.ts";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../call/page.ts";
import { EVENT_KINDS, type EventKind } from "../call/vocabulary.ts";

/** A journal entry without its number. Absent references are "". */
export interface JournalEntry {
  kind: EventKind;
  session_key?: string;
  worker_id?: string;
  task_id?: string;
  execution_id?: string;
  message_id?: string;
  /** `user:<name>`, `token:<name>`, `worker:<id>`, `bee` or `system`. */
  actor?: string;
  data?: Record<string, unknown>;
}

/** An event (contract 4, Journal). Absent references are "". */
export const eventSchema = z.strictObject({
  seq: z.int().meta({ description: "increases with every event" }),
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

export const eventListQuery = {
  after: parseInteger(0, Number.MAX_SAFE_INTEGER).optional()
    .meta({ description: "only events after this number; default: the latest page" }),
  session_key: sessionKeysFilter.optional(),
  worker_id: parseList(id).optional(),
  task_id: parseList(id).optional(),
  kind: parseList(z.enum(EVENT_KINDS)).optional(),
  actor: parseTextList().optional().meta({ description: "actor, such as user:ada or token:ci" }),
  page_size: parseIntegerOr(PAGE_SIZE_DEFAULT, [1, PAGE_SIZE_MAX]),
};
export type EventFilter = z.output<z.ZodObject<typeof eventListQuery>>;
