import { answer } from "../../api/call/answer.ts";
import {
  buildCompletion,
  completionCreateSchema,
  completionSchema,
  modelListSchema,
} from "../../domain/chat/completion.ts";
import { defineRoute } from "../route.ts";
import { watchClient } from "../server/exchange.ts";
import { openCompletionStream } from "./completion_stream.ts";

export const completionRoutes = [
  defineRoute("GET /v1/models", {
    access: "write:chat",
    operation: "model.list",
    summary: "List the workers as models, for clients of OpenAI's API",
    description: "Also requires `write:tasks`.",
    response: modelListSchema,
    handle: ({ api, call }) => api.completion.listModels(call),
  }),
  defineRoute("POST /v1/chat/completions", {
    access: "write:chat",
    operation: "completion.create",
    summary: "Send a message to a worker and get its reply, for clients of OpenAI's API",
    description:
      "Also requires `write:tasks`. With `stream`, the steps are comments and the reply is in `data`. A closed connection " +
      "ends a streamed run, and no other. Unknown fields have no effect.",
    body: completionCreateSchema,
    response: completionSchema,
    streams: true,
    idempotent: true,
    refusals: [502],
    handle: async ({ api, streams, call, body, raw }) => {
      const client = watchClient(raw);
      const isRetry = Number(raw.headers.get("x-stainless-retry-count") ?? 0) > 0;
      const completion = await api.completion.start(call, body, isRetry);
      if (body.stream === true) {
        await api.completion.awaitStart(call, completion, client);
        const withUsage = body.stream_options?.include_usage === true;
        return openCompletionStream({ api, streams, call, completion, withUsage, client });
      }
      return answer(buildCompletion(completion, await api.completion.wait(call, completion, client)));
    },
  }),
] as const;
