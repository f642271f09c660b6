import { z } from "zod";
import type { Authority } from "../../api/call/authority.ts";
import type { Rule } from "../../domain/call/access.ts";
import { hookBodySchema, hookReceivedSchema } from "../../domain/chat/hook.ts";
import { ServiceError } from "../../domain/call/error.ts";
import type { Caller } from "../../domain/call/scope.ts";
import { authenticate } from "../authenticate.ts";
import { authorize } from "../authorize.ts";
import { BODY_MAX_BYTES, readBody } from "../input.ts";
import { defineRoute } from "../route.ts";

const WITH_TOKEN: Rule = { access: "write:hooks" };

export const hookRoutes = [
  defineRoute("POST /hooks/:name", {
    access: "public",
    operation: "hook.receive",
    summary: "Send a message from a program to its worker",
    description:
      "The configuration of the hook chooses the signature: Standard Webhooks, GitHub or Slack. Instead of a signature, send a token " +
      "with `write:hooks`. A repeated id has no effect. Mentions, commands and answers in the text have no effect.",
    params: { name: z.string().max(40) },
    ownBody: hookBodySchema,
    status: 202,
    refusals: [401, 404, 415],
    response: hookReceivedSchema,
    handle: async ({ api, streams, params, raw, counted }) => {
      const found = raw.headers.has("authorization") ? await findTokenHolder(streams.authority, raw) : null;
      const holder = found instanceof ServiceError ? null : found;
      const hook = {
        name: params.name,
        headers: Object.fromEntries(raw.headers),
        body: await readBody(raw, BODY_MAX_BYTES, streams.clock, holder === null ? counted : null),
        holder,
      };
      return await api.hook.receive(hook).catch((error) => {
        // The client sent a token, so the error of the token helps more than the one of the signature.
        throw found instanceof ServiceError && isUnauthenticated(error) ? found : error;
      });
    },
  }),
] as const;

// Returns the error of an invalid token: the request may also have a signature.
async function findTokenHolder(authority: Authority, raw: Request): Promise<Caller | ServiceError> {
  try {
    const { caller } = await authenticate(authority, raw, new URL(raw.url));
    authorize(caller, WITH_TOKEN);
    return caller;
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "unauthenticated";
}
