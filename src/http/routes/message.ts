import { explainSchema, explanationSchema } from "../../domain/chat/explanation.ts";
import { z } from "zod";
import {
  inboundListQuery,
  inboundSchema,
  messageFormSchema,
  messageSendSchema,
  outboundListQuery,
  outboundSchema,
  resendSchema,
  resentSchema,
} from "../../domain/chat/message.ts";
import { messageId } from "../../domain/call/message_id.ts";
import { traceSchema } from "../../domain/chat/trace.ts";
import { parseInput } from "../input.ts";
import { defineRoute } from "../route.ts";
import { addFormFingerprint, readForm } from "../upload.ts";

export const messageRoutes = [
  defineRoute("POST /api/messages", {
    access: "write:messages",
    operation: "message.send",
    summary: "Send a message into the conversation of an earlier message",
    description:
      "Accepts text as JSON, or a form with the fields `message_id`, `content` (optional) and `file`.",
    body: messageSendSchema,
    form: messageFormSchema,
    status: 201,
    response: outboundSchema,
    idempotent: true,
    handle: async ({ api, streams, call, body, raw }) => {
      if (body !== undefined) return await api.message.send(call, body, null);
      const target = api.message.prepareAttachment();
      const { fields, file } = await readForm(raw, target, streams.clock);
      const { run } = call.caller;
      try {
        const shown = run === null ? fields : streams.maskOfRun(run.execution_id, fields);
        const input = parseInput(messageFormSchema, shown);
        return await api.message.send(await addFormFingerprint(call, input, file), input, file);
      } catch (error) {
        await file?.discard();
        throw error;
      }
    },
  }),
  defineRoute("GET /api/messages/inbound", {
    access: "read:messages",
    operation: "message.list",
    summary: "List inbound messages, newest first",
    query: inboundListQuery,
    response: z.array(inboundSchema),
    handle: ({ api, call, query }) => api.message.list(call, query),
  }),
  defineRoute("GET /api/messages/outbound", {
    access: "read:messages",
    operation: "message.list_outbound",
    summary: "List outbound messages, newest first",
    query: outboundListQuery,
    response: z.array(outboundSchema),
    handle: ({ api, call, query }) => api.message.listOutbound(call, query),
  }),
  defineRoute("GET /api/messages/:id/trace", {
    access: "read:messages",
    operation: "message.trace",
    summary: "Trace a message: parts, routing with its reason, tasks, executions and replies, with times",
    params: { id: messageId },
    response: traceSchema,
    handle: ({ api, call, params }) => api.message.trace(call, params.id),
  }),
  defineRoute("POST /api/messages/:id/resend", {
    access: "write:messages",
    operation: "message.resend",
    summary: "Send a failed message again, even one that may have arrived",
    description: "A queued message stays as it is. A sent message is 409.",
    params: { id: messageId },
    response: outboundSchema,
    idempotent: true,
    handle: ({ api, call, params }) => api.message.resend(call, params.id),
  }),
  defineRoute("POST /api/messages/resend", {
    access: "write:messages",
    operation: "message.resend_all",
    summary: "Send all failed messages of a platform again, oldest first",
    body: resendSchema,
    response: resentSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.message.resendAll(call, body),
  }),
  defineRoute("POST /api/messages/explain", {
    access: "write:messages",
    operation: "message.explain",
    summary: "Explain the routing of a message without sending it",
    body: explainSchema,
    response: explanationSchema,
    handle: ({ api, body }) => api.message.explain(body),
  }),
] as const;
