import { z } from "zod";
import {
  deviceCreateSchema,
  deviceListQuery,
  deviceSchema,
  pushKeySchema,
} from "../../domain/account/device.ts";
import {
  userCreatedSchema,
  userCreateSchema,
  userKey,
  userListQuery,
  userPasswordSchema,
  userSchema,
  userUpdateSchema,
} from "../../domain/account/user.ts";
import { id } from "../../domain/call/field.ts";
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

const OWN = "Users manage their own devices after a login. Managing devices of others needs write:users.";

export const deviceRoutes = [
  defineRoute("GET /api/push/key", {
    access: "token",
    operation: "device.key",
    summary: "Get the key with which a browser subscribes to notifications",
    refusals: [409],
    response: pushKeySchema,
    handle: ({ api }) => api.device.getKey(),
  }),
  defineRoute("GET /api/push/devices", {
    access: "write:users",
    operation: "device.list",
    summary: "List devices that receive notifications, newest first",
    description: OWN,
    query: deviceListQuery,
    response: z.array(deviceSchema),
    handle: ({ api, call, query }) => api.device.list(call, query),
  }),
  defineRoute("POST /api/push/devices", {
    access: "write:users",
    operation: "device.create",
    summary: "Add the caller's browser as a device, or change what it receives",
    description: `${OWN} The device ends with the login of the caller.`,
    body: deviceCreateSchema,
    status: 201,
    response: deviceSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.device.create(call, body),
  }),
  defineRoute("DELETE /api/push/devices/:id", {
    access: "write:users",
    operation: "device.delete",
    summary: "Delete a device; it receives nothing from now on",
    description: OWN,
    params: { id },
    response: deletedSchema,
    handle: ({ api, call, params }) => api.device.delete(call, params.id),
  }),
] as const;
