import { z } from "zod";
import {
  memoryEntryQuery,
  memoryListQuery,
  memorySaveSchema,
  memorySchema,
} from "../../domain/workers/memory.ts";
import { defineRoute } from "../route.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";

export const memoryRoutes = [
  defineRoute("GET /api/memory", {
    access: "read:memory",
    operation: "memory.list",
    summary: "List the memory of a scope by key",
    query: memoryListQuery,
    response: z.array(memorySchema),
    handle: ({ api, call, query }) => api.memory.list(call, query),
  }),
  defineRoute("GET /api/memory/entry", {
    access: "read:memory",
    operation: "memory.get",
    summary: "Get a memory entry",
    query: memoryEntryQuery,
    response: memorySchema,
    handle: ({ api, call, query }) => api.memory.get(call, query.scope, query.key),
  }),
  defineRoute("PUT /api/memory/entry", {
    access: "write:memory",
    operation: "memory.save",
    summary: "Save or replace a memory entry",
    body: memorySaveSchema,
    response: memorySchema,
    handle: ({ api, call, body }) => api.memory.save(call, body),
  }),
  defineRoute("DELETE /api/memory/entry", {
    access: "write:memory",
    operation: "memory.delete",
    summary: "Delete a memory entry",
    query: memoryEntryQuery,
    response: deletedSchema,
    handle: ({ api, call, query }) => api.memory.delete(call, query.scope, query.key),
  }),
] as const;
