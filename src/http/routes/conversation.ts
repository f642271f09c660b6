import { z } from "zod";
import { conversationListQuery, conversationSchema } from "../../domain/chat/conversation.ts";
import { searchHitSchema, searchQuery } from "../../domain/system/search.ts";
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

export const searchRoutes = [
  defineRoute("GET /api/search", {
    access: "token",
    operation: "search.find",
    summary: "Search messages, results of runs and memory, newest first",
    description:
      "Requires the scope of each kind in `in`: read:messages, read:executions, read:memory. Without `in`, searches what " +
      "the caller can read. The header Warning says `partial` when older rows were not searched.",
    query: searchQuery,
    response: z.array(searchHitSchema),
    paged: "cursor",
    warns: true,
    handle: ({ api, call, query }) => api.search.find(call, query),
  }),
] as const;
