import { z } from "zod";
import {
  userCreatedSchema,
  userCreateSchema,
  userKey,
  userListQuery,
  userPasswordSchema,
  userSchema,
  userUpdateSchema,
} from "../../domain/account/user.ts";
import { defineRoute } from "../route.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";

const params = { id_or_name: userKey };

export const userRoutes = [
  defineRoute("GET /api/users", {
    access: "read:users",
    operation: "user.list",
    summary: "List users, newest first",
    query: userListQuery,
    response: z.array(userSchema),
    handle: ({ api, query }) => api.user.list(query),
  }),
  defineRoute("POST /api/users", {
    access: "write:users",
    operation: "user.create",
    summary: "Create a user",
    description: "Without a password the service generates one; only the first response contains it.",
    body: userCreateSchema,
    status: 201,
    response: userCreatedSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.user.create(call, body),
  }),
  defineRoute("GET /api/users/:id_or_name", {
    access: "read:users",
    operation: "user.get",
    summary: "Get a user",
    params,
    response: userSchema,
    handle: ({ api, params }) => api.user.get(params.id_or_name),
  }),
  defineRoute("PUT /api/users/:id_or_name", {
    access: "write:users",
    operation: "user.update",
    summary: "Change the name or role of a user, or disable the user, effective within a second",
    params,
    body: userUpdateSchema,
    response: userSchema,
    handle: ({ api, call, params, body }) => api.user.update(call, params.id_or_name, body),
  }),
  defineRoute("DELETE /api/users/:id_or_name", {
    access: "write:users",
    operation: "user.delete",
    summary: "Delete a user with its tokens and logins",
    params,
    response: deletedSchema,
    handle: ({ api, call, params }) => api.user.delete(call, params.id_or_name),
  }),
  defineRoute("PUT /api/users/:id_or_name/password", {
    access: "write:users",
    operation: "user.password",
    summary: "Change the password of a user and end that user's logins",
    description: "Users can change their own password with the current one.",
    params,
    body: userPasswordSchema,
    response: userSchema,
    handle: ({ api, call, params, body, address }) =>
      api.user.setPassword(call, params.id_or_name, { ...body, address }),
  }),
] as const;
