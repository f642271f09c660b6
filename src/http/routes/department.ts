import { z } from "zod";
import {
  createDepartment,
  deleteDepartment,
  getDepartment,
  listDepartments,
  updateDepartment,
} from "../../api/department.ts";
import {
  departmentCreateSchema,
  departmentKey,
  departmentSchema,
  departmentTreeSchema,
  departmentUpdateSchema,
} from "../../domain/department.ts";
import { route } from "../route.ts";
import { deletedSchema } from "./worker.ts";

const params = { id_or_name: departmentKey };

export const departmentRoutes = [
  route({
    method: "GET",
    path: "/api/departments",
    access: "read:departments",
    operation: "department.list",
    summary: "List all departments as a forest, by sort order and name",
    status: 200,
    response: z.array(departmentTreeSchema),
    paged: true,
    handle: async ({ service }) => {
      const { forest, total } = await listDepartments(service);
      return { listing: { json: JSON.stringify(forest), total, next: null } };
    },
  }),
  route({
    method: "POST",
    path: "/api/departments",
    access: "write:departments",
    operation: "department.create",
    summary: "Create a department",
    body: departmentCreateSchema,
    status: 201,
    response: departmentSchema,
    idempotent: true,
    handle: ({ service, call, body }) => createDepartment(service, call, body),
  }),
  route({
    method: "GET",
    path: "/api/departments/:id_or_name",
    access: "read:departments",
    operation: "department.get",
    summary: "Get a department by id or name",
    params,
    status: 200,
    response: departmentSchema,
    handle: async ({ service, params }) => ({ value: await getDepartment(service, params.id_or_name) }),
  }),
  route({
    method: "PUT",
    path: "/api/departments/:id_or_name",
    access: "write:departments",
    operation: "department.update",
    summary: "Rename, move or reorder a department; absent fields stay as they are",
    params,
    body: departmentUpdateSchema,
    status: 200,
    response: departmentSchema,
    handle: async ({ service, call, params, body }) => ({
      value: await updateDepartment(service, call, params.id_or_name, body),
    }),
  }),
  route({
    method: "DELETE",
    path: "/api/departments/:id_or_name",
    access: "write:departments",
    operation: "department.delete",
    summary: "Delete a department that has no children; its workers leave it",
    params,
    status: 200,
    response: deletedSchema,
    handle: async ({ service, call, params }) => {
      await deleteDepartment(service, call, params.id_or_name);
      return { value: { status: "deleted" } };
    },
  }),
] as const;
