import { z } from "zod";
import { parseInteger, parseIntegerOr, parseList, parseTextList, queryTime, time } from "../call/field.ts";
import { eventSchema } from "./journal.ts";
import { PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX } from "../call/page.ts";
import { EVENT_KINDS } from "../call/vocabulary.ts";

/** A change with its caller, time and origin (contract 9). */
export const auditSchema = eventSchema.extend({
  at: time,
  address: z.string().meta({ description: "the client; behind trusted proxies the one that they report" }),
  user_agent: z.string(),
}).meta({ id: "AuditEntry" });

export const auditQuery = {
  after: parseInteger(0, Number.MAX_SAFE_INTEGER).default(0)
    .meta({ type: "integer", minimum: 0, default: 0, description: "only events after this number" }),
  actor: parseTextList().optional(),
  kind: parseList(z.enum(EVENT_KINDS)).optional(),
  from: queryTime.optional(),
  to: queryTime.optional(),
  page_size: parseIntegerOr(PAGE_SIZE_DEFAULT, [1, PAGE_SIZE_MAX]),
};
export type AuditFilter = z.output<z.ZodObject<typeof auditQuery>>;
export type AuditEntry = z.output<typeof auditSchema>;
