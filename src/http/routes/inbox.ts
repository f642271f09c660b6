import { z } from "zod";
import {
  inboxDismissalSchema,
  inboxDismissSchema,
  inboxItemParams,
  inboxItemSchema,
  inboxQuery,
} from "../../domain/system/inbox.ts";
import { defineRoute } from "../route.ts";

export const inboxRoutes = [
  defineRoute("GET /api/inbox", {
    access: "read:tasks",
    operation: "inbox.list",
    summary:
      "List items that need a person: failures, undelivered replies, limits, paused workers; newest first",
    description:
      "At most 100 of each kind, without failed runs whose task ran again and without dismissed items.",
    query: inboxQuery,
    response: z.array(inboxItemSchema),
    handle: ({ api, query }) => api.inbox.list(query),
  }),
  defineRoute("POST /api/inbox/:kind/:id/dismiss", {
    access: "write:tasks",
    operation: "inbox.dismiss",
    summary: "Dismiss a failure, or snooze any item until a time",
    params: inboxItemParams,
    body: inboxDismissSchema,
    response: inboxDismissalSchema,
    handle: ({ api, call, params, body }) => api.inbox.dismiss(call, { ...params, until: body.until }),
  }),
] as const;
