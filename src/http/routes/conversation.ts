import { z } from "zod";
import { conversationListQuery, conversationSchema } from "../../domain/chat/conversation.ts";
import { defineRoute } from "../route.ts";

export const conversationRoutes = [
  defineRoute("GET /api/conversations", {
    access: "read:sessions",
    operation: "conversation.list",
    summary: "List conversations of all platforms, latest first",
    query: conversationListQuery,
    response: z.array(conversationSchema),
    handle: ({ api, call, query }) => api.conversation.list(call, query),
  }),
] as const;
