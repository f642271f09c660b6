import { z } from "zod";
import { deletedSchema } from "../../domain/call/deleted.ts";
import {
  pairingSchema,
  pairSchema,
  platformSchema,
  platformTestSchema,
  senderSchema,
} from "../../domain/chat/platform.ts";
import { defineRoute } from "../route.ts";

const name = z.string().max(40);

export const platformRoutes = [
  defineRoute("GET /api/platforms", {
    access: "read:platforms",
    operation: "platform.list",
    summary: "List platforms with their connections and queued messages",
    response: z.array(platformSchema),
    handle: ({ api }) => api.platform.list(),
  }),
  defineRoute("GET /api/platforms/:name", {
    access: "read:platforms",
    operation: "platform.get",
    summary: "Get a platform",
    params: { name },
    response: platformSchema,
    handle: ({ api, params }) => api.platform.get(params.name),
  }),
  defineRoute("GET /api/platforms/:name/senders", {
    access: "read:platforms",
    operation: "platform.senders",
    summary: "List the paired senders of a platform",
    params: { name },
    response: z.array(senderSchema),
    handle: ({ api, params }) => api.platform.senders(params.name),
  }),
  defineRoute("POST /api/platforms/pair", {
    access: "write:platforms",
    operation: "platform.pair",
    summary: "Find the sender of a pairing code, or pair the sender",
    description:
      "Without `sender` the answer only names the owner of the code. With the id from that answer, the sender is paired.",
    body: pairSchema,
    response: pairingSchema,
    handle: ({ api, call, body }) => api.platform.pair(call, body),
  }),
  defineRoute("DELETE /api/platforms/:name/senders/:sender", {
    access: "write:platforms",
    operation: "platform.revoke",
    summary: "Unpair a sender",
    params: { name, sender: z.string().max(400) },
    response: deletedSchema,
    handle: ({ api, call, params }) => api.platform.revoke(call, params.name, params.sender),
  }),
  defineRoute("POST /api/platforms/:name/test", {
    access: "write:platforms",
    operation: "platform.test",
    summary: "Test the key of a platform",
    params: { name },
    response: platformTestSchema,
    handle: ({ api, call, params }) => api.platform.test(call, params.name),
  }),
] as const;
