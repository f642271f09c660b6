import { z } from "zod";
import { listEvents } from "../../api/event.ts";
import { ServiceError } from "../../domain/error.ts";
import { eventListQuery, eventSchema } from "../../domain/journal.ts";
import { journalStream } from "../event_stream.ts";
import { route } from "../route.ts";

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
    handle: async ({ service, call, query, raw, claims }) => {
      if (wantsJson(raw.headers.get("accept"))) {
        const { items, next } = await listEvents(service, call, query);
        return { items, ...(next === null ? {} : { next: { name: "after", value: String(next) } }) };
      }
      if (claims === null) throw new ServiceError("unauthenticated", "Cannot stream without a token");
      const lastEventId = raw.headers.get("last-event-id");
      return { response: await journalStream(service, call, query, { claims, lastEventId }) };
    },
  }),
] as const;

function wantsJson(accept: string | null): boolean {
  return /\bapplication\/json\b/i.test(accept ?? "") && !/\btext\/event-stream\b/i.test(accept ?? "");
}
