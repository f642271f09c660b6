import { z } from "zod";
import { inboxItemSchema, inboxQuery } from "../../domain/system/inbox.ts";
import { defineRoute } from "../route.ts";

export const inboxRoutes = [
  defineRoute("GET /api/inbox", {
    access: "read:tasks",
    operation: "inbox.list",
    summary:
      "List items that need a person: failures, undelivered replies, limits, paused workers; newest first",
    description: "At most 100 of each kind, without failed runs whose task ran again.",
    query: inboxQuery,
    response: z.array(inboxItemSchema),
    handle: ({ api, call, query }) => api.inbox.list(call, query),
  }),
] as const;
