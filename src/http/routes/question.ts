import { z } from "zod";
import { id } from "../../domain/call/field.ts";
import {
  questionAnswerSchema,
  questionCreateSchema,
  questionListQuery,
  questionSchema,
  questionWaitQuery,
} from "../../domain/work/question.ts";
import { lateJson } from "../stream/streamed_json.ts";
import { route } from "../route.ts";

export const questionRoutes = [
  route({
    method: "POST",
    path: "/api/questions",
    access: "write:questions",
    // A tool of this name is what agents look for.
    operation: "ask",
    summary: "Ask a person a question",
    description:
      "It is sent to the conversation of the message. Then end your turn: the answer comes to you as a " +
      "new task. `default` counts when nobody answers within `timeout_ms` (24 hours when left out). " +
      "An equal open question of the same task is the same question.",
    body: questionCreateSchema,
    status: 201,
    response: questionSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.question.ask(call, body),
  }),
  route({
    method: "GET",
    path: "/api/questions",
    access: "read:questions",
    operation: "question.list",
    summary: "List questions, newest first",
    query: questionListQuery,
    status: 200,
    response: z.array(questionSchema),
    paged: true,
    handle: ({ api, call, query }) => api.question.list(call, query),
  }),
  route({
    method: "GET",
    path: "/api/questions/:id",
    access: "read:questions",
    operation: "question.get",
    summary: "Get a question",
    params: { id },
    status: 200,
    response: questionSchema,
    handle: ({ api, call, params }) => api.question.get(call, params.id),
  }),
  route({
    method: "GET",
    path: "/api/questions/:id/wait",
    access: "read:questions",
    operation: "question.wait",
    summary: "Wait until a question is answered, expired or cancelled",
    description:
      "Answers the question as it is when `timeout_ms` are over. The run that asked has seen an answer " +
      "that comes so; it gets no task for it.",
    params: { id },
    query: questionWaitQuery,
    status: 200,
    response: questionSchema,
    handle: async ({ api, call, params, query }) => {
      await api.question.get(call, params.id);
      return lateJson((signal) =>
        api.question.wait(call, params.id, { timeoutMs: query.timeout_ms, signal })
      );
    },
  }),
  route({
    method: "POST",
    path: "/api/questions/:id/answer",
    access: "write:questions",
    operation: "question.answer",
    summary: "Answer a question, once",
    description: "An option is named by its text or its number; any other text is an answer, too.",
    params: { id },
    body: questionAnswerSchema,
    status: 200,
    response: questionSchema,
    handle: ({ api, call, params, body }) => api.question.answer(call, params.id, body.answer),
  }),
  route({
    method: "POST",
    path: "/api/questions/:id/cancel",
    access: "write:questions",
    operation: "question.cancel",
    summary: "Cancel an open question",
    params: { id },
    body: z.strictObject({}),
    status: 200,
    response: questionSchema,
    handle: ({ api, call, params }) => api.question.cancel(call, params.id),
  }),
] as const;
