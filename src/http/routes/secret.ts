import { z } from "zod";
import { secretListQuery, secretPutSchema, secretSchema } from "../../domain/account/secret.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";
import { defineRoute } from "../route.ts";

const params = { name: z.string().min(1).max(200) };

export const secretRoutes = [
  defineRoute("GET /api/secrets", {
    access: "write:secrets",
    operation: "secret.list",
    summary: "List secrets by name, without their values",
    query: secretListQuery,
    response: z.array(secretSchema),
    handle: ({ api, query }) => api.secret.list(query),
  }),
  defineRoute("GET /api/secrets/:name", {
    access: "write:secrets",
    operation: "secret.get",
    summary: "Get a secret without its value",
    params,
    response: secretSchema,
    handle: ({ api, params }) => api.secret.get(params.name),
  }),
  defineRoute("PUT /api/secrets/:name", {
    access: "write:secrets",
    operation: "secret.put",
    summary: "Create a secret, or change its value or the workers that may use it",
    description:
      "No response shows the value. Idle processes of the workers that could use the secret end before the response.",
    params,
    body: secretPutSchema,
    warns: true,
    response: secretSchema,
    handle: ({ api, call, params, body }) => api.secret.put(call, params.name, body),
  }),
  defineRoute("DELETE /api/secrets/:name", {
    access: "write:secrets",
    operation: "secret.delete",
    summary: "Delete a secret. Later runs of workers that use it fail",
    params,
    response: deletedSchema,
    handle: ({ api, call, params }) => api.secret.delete(call, params.name),
  }),
] as const;
