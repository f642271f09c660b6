import { z } from "zod";
import { auditQuery, auditSchema } from "../../domain/system/audit.ts";
import { eventListQuery, eventSchema } from "../../domain/system/journal.ts";
import { STREAM_EVENTS } from "../../domain/chat/stream.ts";
import { openJournalStream } from "../stream/event_stream.ts";
import { defineRoute } from "../route.ts";
import { buildStreamClient } from "../stream/event_source.ts";

export const eventRoutes = [
  defineRoute("GET /api/events", {
    access: "read:system",
    operation: "event.list",
    summary: "Stream events as Server-Sent Events, or get a page of them as JSON",
    description:
      "`Accept: application/json` returns a page, oldest first: after the number `after`, or the latest. " +
      "Other values return a stream of events named `event`: new ones, or all after `after` or `Last-Event-ID`.",
    query: eventListQuery,
    response: z.array(eventSchema),
    streams: true,
    events: { event: eventSchema, ...STREAM_EVENTS },
    handle: async ({ api, streams, call, query, raw }) => {
      if (wantsJson(raw.headers.get("accept"))) {
        return await api.event.list(call, query);
      }
      return await openJournalStream(
        { api, streams },
        call,
        query,
        buildStreamClient(raw, call, query.after),
      );
    },
  }),
] as const;

export const auditRoutes = [
  defineRoute("GET /api/audit", {
    access: "read:users",
    operation: "audit.list",
    summary: "List changes with caller, time and address, oldest first",
    description:
      "Entries are kept as long as the journal. `Accept: application/x-ndjson` returns the page as JSON lines. The header " +
      "Link has the address of the next page.",
    query: auditQuery,
    response: z.array(auditSchema),
    handle: async ({ api, query, raw }) => {
      const answer = await api.audit.list(query);
      const lines = /\bapplication\/x-ndjson\b/i.test(raw.headers.get("accept") ?? "");
      return lines ? { ...answer, form: "lines" } : answer;
    },
  }),
] as const;

function wantsJson(accept: string | null): boolean {
  return /\bapplication\/json\b/i.test(accept ?? "") && !/\btext\/event-stream\b/i.test(accept ?? "");
}
