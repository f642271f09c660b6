import { z } from "zod";
import { deletedSchema } from "../../domain/call/deleted.ts";
import {
  deliveryListQuery,
  deliverySchema,
  replaySchema,
  webhookCreatedSchema,
  webhookCreateSchema,
  webhookListQuery,
  webhookSchema,
  webhookUpdateSchema,
} from "../../domain/system/webhook.ts";
import { defineRoute } from "../route.ts";

const params = { id_or_name: z.string().min(1).max(200) };

export const webhookRoutes = [
  defineRoute("GET /api/webhooks", {
    access: "read:webhooks",
    operation: "webhook.list",
    summary: "List webhooks, newest first, without their secrets",
    query: webhookListQuery,
    response: z.array(webhookSchema),
    handle: ({ api, call, query }) => api.webhook.list(call, query),
  }),
  defineRoute("POST /api/webhooks", {
    access: "write:webhooks",
    operation: "webhook.create",
    summary:
      "Create a webhook, which sends signed events to an address; only this response contains its secret",
    body: webhookCreateSchema,
    status: 201,
    response: webhookCreatedSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.webhook.create(call, body),
  }),
  defineRoute("GET /api/webhooks/:id_or_name", {
    access: "read:webhooks",
    operation: "webhook.get",
    summary: "Get a webhook by id or name",
    params,
    response: webhookSchema,
    handle: ({ api, call, params }) => api.webhook.get(call, params.id_or_name),
  }),
  defineRoute("PUT /api/webhooks/:id_or_name", {
    access: "write:webhooks",
    operation: "webhook.update",
    summary: "Change a webhook, or enable it again",
    params,
    body: webhookUpdateSchema,
    response: webhookSchema,
    handle: ({ api, call, params, body }) => api.webhook.update(call, params.id_or_name, body),
  }),
  defineRoute("DELETE /api/webhooks/:id_or_name", {
    access: "write:webhooks",
    operation: "webhook.delete",
    summary: "Delete a webhook",
    params,
    response: deletedSchema,
    handle: ({ api, call, params }) => api.webhook.delete(call, params.id_or_name),
  }),
  defineRoute("POST /api/webhooks/:id_or_name/test", {
    access: "write:webhooks",
    operation: "webhook.test",
    summary: "Send a test event and return the result",
    params,
    response: deliverySchema,
    handle: ({ api, call, params }) => api.webhook.test(call, params.id_or_name),
  }),
  defineRoute("GET /api/webhooks/:id_or_name/deliveries", {
    access: "read:webhooks",
    operation: "webhook.deliveries",
    summary: "List the delivery attempts of a webhook, newest first",
    params,
    query: deliveryListQuery,
    response: z.array(deliverySchema),
    handle: ({ api, params, query }) => api.webhook.deliveries(params.id_or_name, query),
  }),
  defineRoute("POST /api/webhooks/:id_or_name/replay", {
    access: "write:webhooks",
    operation: "webhook.replay",
    summary: "Deliver all events after a given one again",
    params,
    body: replaySchema,
    response: webhookSchema,
    handle: ({ api, call, params, body }) => api.webhook.replay(call, params.id_or_name, body),
  }),
] as const;
