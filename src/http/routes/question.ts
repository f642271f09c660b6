import { z } from "zod";
import { id } from "../../domain/call/field.ts";
import {
  approvalCreateSchema,
  approvalDecisionSchema,
  approvalListQuery,
  approvalSchema,
} from "../../domain/work/approval.ts";
import {
  questionAnswerSchema,
  questionCreateSchema,
  questionListQuery,
  questionSchema,
  questionWaitQuery,
} from "../../domain/work/question.ts";
import { buildStreamedJson } from "../stream/streamed_json.ts";
import { defineRoute } from "../route.ts";

export const questionRoutes = [
  defineRoute("POST /api/questions", {
    access: "write:questions",
    // Agents look for a tool with this name.
    operation: "ask",
    summary: "Ask a person a question",
    description:
      "Sends the question to the conversation of the message. Then end your turn: you get the answer as a " +
      "new task. Without an answer within `timeout_ms` (24 hours by default), `default` is the answer. " +
      "Repeating an open question in the same task returns that question.",
    body: questionCreateSchema,
    status: 201,
    response: questionSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.question.ask(call, body),
  }),
  defineRoute("GET /api/questions", {
    access: "read:questions",
    operation: "question.list",
    summary: "List questions, newest first",
    query: questionListQuery,
    response: z.array(questionSchema),
    handle: ({ api, call, query }) => api.question.list(call, query),
  }),
  defineRoute("GET /api/questions/:id", {
    access: "read:questions",
    operation: "question.get",
    summary: "Get a question",
    params: { id },
    response: questionSchema,
    handle: ({ api, call, params }) => api.question.get(call, params.id),
  }),
  defineRoute("GET /api/questions/:id/wait", {
    access: "read:questions",
    operation: "question.wait",
    summary: "Wait until a question is answered, expired or cancelled",
    description:
      "Returns the question unchanged after `timeout_ms`. The run that asked and gets the answer here " +
      "gets no task with it.",
    params: { id },
    query: questionWaitQuery,
    response: questionSchema,
    handle: async ({ api, call, params, query }) => {
      await api.question.get(call, params.id);
      return buildStreamedJson((signal) =>
        api.question.wait(call, params.id, { timeoutMs: query.timeout_ms, signal })
      );
    },
  }),
  defineRoute("POST /api/questions/:id/answer", {
    access: "write:questions",
    operation: "question.answer",
    summary: "Answer an open question",
    description: "Choose an option by its text or number, or give any other text.",
    params: { id },
    body: questionAnswerSchema,
    response: questionSchema,
    handle: ({ api, call, params, body }) => api.question.answer(call, params.id, body.answer),
  }),
  defineRoute("POST /api/questions/:id/cancel", {
    access: "write:questions",
    operation: "question.cancel",
    summary: "Cancel an open question",
    params: { id },
    body: z.strictObject({}),
    response: questionSchema,
    handle: ({ api, call, params }) => api.question.cancel(call, params.id),
  }),
] as const;

export const approvalRoutes = [
  defineRoute("GET /api/approvals", {
    access: "read:sessions",
    operation: "approval.list",
    summary: "List the tool calls that a conversation allows without a question",
    query: approvalListQuery,
    response: z.array(approvalSchema),
    handle: ({ api, call, query }) => api.approval.list(call, query.session_key, query),
  }),
  defineRoute("POST /api/approvals", {
    access: "token",
    operation: "approval.request",
    summary: "Ask whether a tool call of the run is allowed",
    description:
      "For the engine of a run with `permissions: ask`. A remembered call is allowed, and one that nobody can be " +
      "asked about is denied. For all others a question is opened.",
    body: approvalCreateSchema,
    response: approvalDecisionSchema,
    status: 201,
    idempotent: true,
    handle: ({ api, call, body }) => api.approval.request(call, body),
  }),
  defineRoute("GET /api/approvals/:id/wait", {
    access: "token",
    operation: "approval.wait",
    summary: "Wait for the answer about a tool call",
    params: { id },
    query: questionWaitQuery,
    response: approvalDecisionSchema,
    handle: ({ api, call, params, query }) =>
      Promise.resolve(
        buildStreamedJson((signal) =>
          api.approval.wait(call, params.id, { timeoutMs: query.timeout_ms, signal })
        ),
      ),
  }),
  defineRoute("POST /api/approvals/:id/withdraw", {
    access: "token",
    operation: "approval.withdraw",
    summary: "Withdraw the question about a tool call that its agent dropped",
    params: { id },
    body: z.strictObject({}),
    response: approvalDecisionSchema,
    handle: ({ api, call, params }) => api.approval.withdraw(call, params.id),
  }),
] as const;
