import { z } from "zod";
import { deletedSchema } from "../../domain/call/deleted.ts";
import {
  pairingSchema,
  pairSchema,
  platformSchema,
  platformTestSchema,
  senderSchema,
} from "../../domain/chat/platform.ts";
import { route } from "../route.ts";

const name = z.string().max(40);

export const platformRoutes = [
  route({
    method: "GET",
    path: "/api/platforms",
    access: "read:platforms",
    operation: "platform.list",
    summary: "List the platforms, their connections and what waits for them",
    status: 200,
    response: z.array(platformSchema),
    paged: true,
    handle: ({ api, call }) => api.platform.list(call),
  }),
  route({
    method: "GET",
    path: "/api/platforms/:name",
    access: "read:platforms",
    operation: "platform.get",
    summary: "Get a platform",
    params: { name },
    status: 200,
    response: platformSchema,
    handle: ({ api, call, params }) => api.platform.get(call, params.name),
  }),
  route({
    method: "GET",
    path: "/api/platforms/:name/senders",
    access: "read:platforms",
    operation: "platform.senders",
    summary: "List who was paired on a platform",
    params: { name },
    status: 200,
    response: z.array(senderSchema),
    paged: true,
    handle: ({ api, call, params }) => api.platform.senders(call, params.name),
  }),
  route({
    method: "POST",
    path: "/api/platforms/pair",
    access: "write:platforms",
    operation: "platform.pair",
    summary: "Say whose pairing code this is, or let them in",
    description:
      "Without `sender` it only says who was given the code. With the id that it said, they may speak from now on.",
    body: pairSchema,
    status: 200,
    response: pairingSchema,
    handle: ({ api, call, body }) => api.platform.pair(call, body),
  }),
  route({
    method: "DELETE",
    path: "/api/platforms/:name/senders/:sender",
    access: "write:platforms",
    operation: "platform.revoke",
    summary: "Take the right to speak from somebody who was paired",
    params: { name, sender: z.string().max(400) },
    status: 200,
    response: deletedSchema,
    handle: ({ api, call, params }) => api.platform.revoke(call, params.name, params.sender),
  }),
  route({
    method: "POST",
    path: "/api/platforms/:name/test",
    access: "write:platforms",
    operation: "platform.test",
    summary: "Ask a platform whether its key counts",
    params: { name },
    status: 200,
    response: platformTestSchema,
    handle: ({ api, call, params }) => api.platform.test(call, params.name),
  }),
] as const;
