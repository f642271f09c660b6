import { z } from "zod";
import {
  departmentCreateSchema,
  departmentKey,
  departmentSchema,
  departmentTreeSchema,
  departmentUpdateSchema,
} from "../../domain/workers/department.ts";
import { defineRoute } from "../route.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";

const params = { id_or_name: departmentKey };

export const departmentRoutes = [
  defineRoute("GET /api/departments", {
    access: "read:departments",
    operation: "department.list",
    summary: "List all departments as trees, by sort order and name",
    response: z.array(departmentTreeSchema),
    handle: ({ api }) => api.department.list(),
  }),
  defineRoute("POST /api/departments", {
    access: "write:departments",
    operation: "department.create",
    summary: "Create a department",
    body: departmentCreateSchema,
    status: 201,
    response: departmentSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.department.create(call, body),
  }),
  defineRoute("GET /api/departments/:id_or_name", {
    access: "read:departments",
    operation: "department.get",
    summary: "Get a department by id or name",
    params,
    response: departmentSchema,
    handle: ({ api, params }) => api.department.get(params.id_or_name),
  }),
  defineRoute("PUT /api/departments/:id_or_name", {
    access: "write:departments",
    operation: "department.update",
    summary: "Rename, move or reorder a department; absent fields stay as they are",
    params,
    body: departmentUpdateSchema,
    response: departmentSchema,
    handle: ({ api, call, params, body }) => api.department.update(call, params.id_or_name, body),
  }),
  defineRoute("DELETE /api/departments/:id_or_name", {
    access: "write:departments",
    operation: "department.delete",
    summary: "Delete a department without children; its workers then have no department",
    params,
    response: deletedSchema,
    handle: ({ api, call, params }) => api.department.delete(call, params.id_or_name),
  }),
] as const;
