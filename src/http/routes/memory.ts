import { z } from "zod";
import { deleteMemory, getMemory, listMemory, saveMemory } from "../../api/memory.ts";
import { memoryEntryQuery, memoryListQuery, memorySaveSchema, memorySchema } from "../../domain/memory.ts";
import { route } from "../route.ts";
import { deletedSchema } from "./worker.ts";

export const memoryRoutes = [
  route({
    method: "GET",
    path: "/api/memory",
    access: "read:memory",
    operation: "memory.list",
    summary: "List the memory of a scope by key",
    query: memoryListQuery,
    status: 200,
    response: z.array(memorySchema),
    paged: true,
    handle: async ({ service, call, query }) => ({
      listing: await listMemory(service, call, query.scope, query),
    }),
  }),
  route({
    method: "GET",
    path: "/api/memory/entry",
    access: "read:memory",
    operation: "memory.get",
    summary: "Get a memory entry",
    query: memoryEntryQuery,
    status: 200,
    response: memorySchema,
    handle: async ({ service, call, query }) => ({
      value: await getMemory(service, call, query.scope, query.key),
    }),
  }),
  route({
    method: "PUT",
    path: "/api/memory/entry",
    access: "write:memory",
    operation: "memory.save",
    summary: "Save or replace a memory entry",
    body: memorySaveSchema,
    status: 200,
    response: memorySchema,
    handle: async ({ service, call, body }) => ({ value: await saveMemory(service, call, body) }),
  }),
  route({
    method: "DELETE",
    path: "/api/memory/entry",
    access: "write:memory",
    operation: "memory.delete",
    summary: "Delete a memory entry",
    query: memoryEntryQuery,
    status: 200,
    response: deletedSchema,
    handle: async ({ service, call, query }) => {
      await deleteMemory(service, call, query.scope, query.key);
      return { value: { status: "deleted" } };
    },
  }),
] as const;
