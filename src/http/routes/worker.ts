import { z } from "zod";
import { flag, id } from "../../domain/call/field.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";
import {
  workerCreateSchema,
  workerListQuery,
  workerRehomeSchema,
  workerSchema,
  workerStatusSchema,
  workerUpdateSchema,
} from "../../domain/workers/worker.ts";
import { skillCheckedSchema, skillCheckSchema } from "../../domain/workers/skill.ts";
import { treeListQuery, treeSchema } from "../../domain/work/tree.ts";
import { defineRoute } from "../route.ts";

export const workerRoutes = [
  defineRoute("POST /api/workers", {
    access: "write:workers",
    operation: "worker.create",
    summary: "Create a worker",
    warns: true,
    body: workerCreateSchema,
    status: 201,
    response: workerSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.worker.create(call, body),
  }),
  defineRoute("GET /api/workers", {
    access: "read:workers",
    operation: "worker.list",
    summary: "List workers, newest first",
    query: workerListQuery,
    response: z.array(workerSchema),
    handle: ({ api, call, query }) => api.worker.list(call, query),
  }),
  defineRoute("GET /api/workers/:id", {
    access: "read:workers",
    operation: "worker.get",
    summary: "Get a worker",
    params: { id },
    response: workerSchema,
    handle: ({ api, call, params }) => api.worker.get(call, params.id),
  }),
  defineRoute("GET /api/workers/:id/status", {
    access: "read:workers",
    operation: "worker.status",
    summary: "Get the current work of a worker and whether it can start",
    params: { id },
    response: workerStatusSchema,
    handle: ({ api, params }) => api.worker.status(params.id),
  }),
  defineRoute("GET /api/workers/:id/trees", {
    access: "read:workers",
    operation: "worker.trees",
    summary: "List the branches and worktrees of a worker, newest first",
    params: { id },
    query: treeListQuery,
    response: z.array(treeSchema),
    handle: ({ api, call, params, query }) => api.worker.trees(call, params.id, query),
  }),
  defineRoute("POST /api/workers/:id/skills/check", {
    access: "write:workers",
    operation: "worker.checkSkill",
    summary: "Fetch a skill and show its changes; the worker stays as it is",
    params: { id },
    body: skillCheckSchema,
    response: skillCheckedSchema,
    handle: ({ api, call, params, body }) => api.worker.checkSkill(call, params.id, body),
  }),
  defineRoute("PUT /api/workers/:id", {
    access: "write:workers",
    operation: "worker.update",
    summary: "Change a worker; absent fields stay as they are",
    warns: true,
    params: { id },
    body: workerUpdateSchema,
    response: workerSchema,
    handle: ({ api, call, params, body }) => api.worker.update(call, params.id, body),
  }),
  defineRoute("POST /api/workers/:id/rehome", {
    access: "write:workers",
    operation: "worker.rehome",
    summary: "Set the runner that has the directory of a worker, without copying files",
    params: { id },
    body: workerRehomeSchema,
    response: workerSchema,
    refusals: [409],
    handle: ({ api, call, params, body }) => api.worker.rehome(call, params.id, body),
  }),
  defineRoute("DELETE /api/workers/:id", {
    access: "write:workers",
    operation: "worker.delete",
    summary: "Delete a worker: cancel its tasks, end its runs, keep its history",
    params: { id },
    query: { delete_work_dir: flag.default(false).meta({ type: "boolean", default: false }) },
    response: deletedSchema,
    handle: ({ api, call, params, query }) => api.worker.delete(call, params.id, query.delete_work_dir),
  }),
] as const;
