import { z } from "zod";
import type { Authority } from "../../api/call/authority.ts";
import type { Rule } from "../../domain/call/access.ts";
import { hookBodySchema, hookReceivedSchema } from "../../domain/chat/hook.ts";
import { ServiceError } from "../../domain/call/error.ts";
import type { Caller } from "../../domain/call/scope.ts";
import { authenticate } from "../authenticate.ts";
import { authorize } from "../authorize.ts";
import { BODY_MAX_BYTES, readBody } from "../input.ts";
import { route } from "../route.ts";

const WITH_TOKEN: Rule = { access: "write:hooks" };

export const hookRoutes = [
  route({
    method: "POST",
    path: "/hooks/:name",
    access: "public",
    operation: "hook.receive",
    summary: "Send a message of a program to its worker",
    description:
      "Signed as Standard Webhooks, GitHub or Slack do, as the configuration of the hook says; or with a token " +
      "that has `write:hooks`. The same id again changes nothing. The text is data: no mentions, commands or answers.",
    params: { name: z.string().max(40) },
    ownBody: hookBodySchema,
    status: 202,
    refusals: [401, 404, 415],
    response: hookReceivedSchema,
    handle: async ({ api, streams, params, raw }) => {
      const held = raw.headers.has("authorization") ? await holderOf(streams.authority, raw) : null;
      const hook = {
        name: params.name,
        headers: Object.fromEntries(raw.headers),
        body: await readBody(raw, BODY_MAX_BYTES, streams.clock),
        holder: held instanceof ServiceError ? null : held,
      };
      return await api.hook.receive(hook).catch((error) => {
        // The token was meant, so what is wrong with it says more than the missing signature.
        throw held instanceof ServiceError && isUnauthenticated(error) ? held : error;
      });
    },
  }),
] as const;

// Either of the two will do, so a token that does not count is no end.
async function holderOf(authority: Authority, raw: Request): Promise<Caller | ServiceError> {
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
