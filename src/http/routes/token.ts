import { z } from "zod";
import { id } from "../../domain/call/field.ts";
import {
  tokenCreatedSchema,
  tokenCreateSchema,
  tokenListQuery,
  tokenSchema,
} from "../../domain/account/token.ts";
import { defineRoute } from "../route.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";

const OWN =
  "Users manage their own tokens after a login. Managing tokens of others, or with a token, needs write:tokens.";

export const tokenRoutes = [
  defineRoute("GET /api/tokens", {
    access: "write:tokens",
    operation: "token.list",
    summary: "List tokens, newest first, without their secrets",
    description: OWN,
    query: tokenListQuery,
    response: z.array(tokenSchema),
    handle: ({ api, call, query }) => api.token.list(call, query),
  }),
  defineRoute("POST /api/tokens", {
    access: "write:tokens",
    operation: "token.create",
    summary: "Create a token for a program; only this response contains its secret",
    description: OWN,
    body: tokenCreateSchema,
    status: 201,
    response: tokenCreatedSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.token.create(call, body),
  }),
  defineRoute("DELETE /api/tokens/:id", {
    access: "write:tokens",
    operation: "token.delete",
    summary: "Revoke a token; it is invalid immediately",
    description: OWN,
    params: { id },
    response: deletedSchema,
    handle: ({ api, call, params }) => api.token.delete(call, params.id),
  }),
] as const;
