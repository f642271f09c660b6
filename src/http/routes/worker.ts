import { z } from "zod";
import { createWorker, deleteWorker, getWorker, listWorkers, updateWorker } from "../../api/worker.ts";
import { getWorkerStatus } from "../../api/worker_status.ts";
import { flag, id } from "../../domain/field.ts";
import { idleScopes } from "../../domain/scope.ts";
import {
  workerCreateSchema,
  workerListQuery,
  workerSchema,
  workerStatusSchema,
  workerUpdateSchema,
} from "../../domain/worker.ts";
import { route } from "../route.ts";

/** What a deletion answers (interface 4.1). */
export const deletedSchema = z.strictObject({ status: z.literal("deleted") }).meta({ id: "Deleted" });

export const workerRoutes = [
  route({
    method: "POST",
    path: "/api/workers",
    access: "write:workers",
    operation: "worker.create",
    summary: "Create a worker",
    body: workerCreateSchema,
    status: 201,
    response: workerSchema,
    idempotent: true,
    handle: async ({ service, call, body }) => ({
      ...await createWorker(service, call, body),
      ...warningOf(body.scopes),
    }),
  }),
  route({
    method: "GET",
    path: "/api/workers",
    access: "read:workers",
    operation: "worker.list",
    summary: "List workers, newest first",
    query: workerListQuery,
    status: 200,
    response: z.array(workerSchema),
    paged: true,
    handle: async ({ service, query }) => ({ listing: await listWorkers(service, query) }),
  }),
  route({
    method: "GET",
    path: "/api/workers/:id",
    access: "read:workers",
    operation: "worker.get",
    summary: "Get a worker",
    params: { id },
    status: 200,
    response: workerSchema,
    handle: async ({ service, params }) => ({ json: await getWorker(service, params.id) }),
  }),
  route({
    method: "GET",
    path: "/api/workers/:id/status",
    access: "read:workers",
    operation: "worker.status",
    summary: "Tell what a worker is doing and whether it can be started",
    params: { id },
    status: 200,
    response: workerStatusSchema,
    handle: async ({ service, params }) => ({ value: await getWorkerStatus(service, params.id) }),
  }),
  route({
    method: "PUT",
    path: "/api/workers/:id",
    access: "write:workers",
    operation: "worker.update",
    summary: "Change a worker; absent fields stay as they are",
    params: { id },
    body: workerUpdateSchema,
    status: 200,
    response: workerSchema,
    handle: async ({ service, call, params, body }) => ({
      json: await updateWorker(service, call, params.id, body),
      ...warningOf(body.scopes),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/workers/:id",
    access: "write:workers",
    operation: "worker.delete",
    summary: "Delete a worker; its tasks are cancelled, its runs ended, its history kept",
    params: { id },
    query: { delete_work_dir: flag.default(false).meta({ type: "boolean", default: false }) },
    status: 200,
    response: deletedSchema,
    handle: async ({ service, call, params, query }) => {
      await deleteWorker(service, call, params.id, query.delete_work_dir);
      return { value: { status: "deleted" } };
    },
  }),
] as const;

// What is most likely a typing mistake is stored, grants nothing, and is warned about (contract 2).
function warningOf(scopes: readonly string[] = []): { warning?: string } {
  const idle = idleScopes(scopes);
  return idle.length === 0 ? {} : { warning: `no route asks for ${idle.join(", ")}, so it grants nothing` };
}
