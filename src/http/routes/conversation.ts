import { z } from "zod";
import { conversationListQuery, conversationSchema } from "../../domain/chat/conversation.ts";
import { recallQuery, searchHitSchema, searchQuery } from "../../domain/system/search.ts";
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
    refusals: [409],
    handle: ({ api, call, query }) => api.search.find(call, query),
  }),
  defineRoute("GET /api/recall", {
    access: "token",
    operation: "recall",
    summary: "Search the messages of your conversation, results of your earlier runs in it, and your memory",
    description: "Returns texts with all words of `q`, newest first.",
    query: recallQuery,
    response: z.array(searchHitSchema),
    paged: "cursor",
    warns: true,
    refusals: [409],
    handle: ({ api, call, query }) => api.search.recall(call, query),
  }),
] as const;
