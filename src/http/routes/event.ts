import { z } from "zod";
import { eventListQuery, eventSchema } from "../../domain/system/journal.ts";
import { STREAM_EVENTS } from "../../domain/chat/stream.ts";
import { journalStream } from "../stream/event_stream.ts";
import { route } from "../route.ts";
import { clientOf } from "../stream/event_source.ts";

export const eventRoutes = [
  route({
    method: "GET",
    path: "/api/events",
    access: "read:system",
    operation: "event.list",
    summary: "Follow everything that happens, as Server-Sent Events, or read a page of it as JSON",
    description: "`Accept: application/json` answers a page, oldest first: behind `after`, or the latest. " +
      "Anything else answers a stream of events called `event`, from now on or behind `after` or `Last-Event-ID`.",
    query: eventListQuery,
    status: 200,
    response: z.array(eventSchema),
    streams: true,
    paged: true,
    events: { event: eventSchema, ...STREAM_EVENTS },
    handle: async ({ api, streams, call, query, raw }) => {
      if (wantsJson(raw.headers.get("accept"))) {
        return await api.event.list(call, query);
      }
      return await journalStream({ api, streams }, call, query, clientOf(raw, call, query.after));
    },
  }),
] as const;

function wantsJson(accept: string | null): boolean {
  return /\bapplication\/json\b/i.test(accept ?? "") && !/\btext\/event-stream\b/i.test(accept ?? "");
}
