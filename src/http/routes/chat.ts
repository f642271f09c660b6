import { z } from "zod";
import {
  buildChatSessionKey,
  chatCreateSchema,
  chatListQuery,
  chatMessageSchema,
  chatSendSchema,
  chatSessionSchema,
  chatUpdateSchema,
  historyQuery,
  queuedSchema,
} from "../../domain/chat/chat.ts";
import { invalid } from "../../domain/call/error.ts";
import { id, parseInteger } from "../../domain/call/field.ts";
import { mediaSchema } from "../../domain/chat/message.ts";
import { CONVERSATION_EVENTS } from "../../domain/chat/stream.ts";
import { openConversationStream } from "../stream/conversation_stream.ts";
import { parseInput } from "../input.ts";
import { buildDownload } from "../stream/download.ts";
import { defineRoute } from "../route.ts";
import { buildStreamClient } from "../stream/event_source.ts";
import { addFormFingerprint, readForm } from "../upload.ts";
import { deletedSchema } from "../../domain/call/deleted.ts";

const NO_FIELDS = z.strictObject({});

export const chatRoutes = [
  defineRoute("POST /api/local/sessions", {
    access: "write:chat",
    operation: "chat.create",
    summary: "Create a local session",
    body: chatCreateSchema,
    status: 201,
    response: chatSessionSchema,
    idempotent: true,
    handle: ({ api, call, body }) => api.chat.create(call, body),
  }),
  defineRoute("GET /api/local/sessions", {
    access: "read:chat",
    operation: "chat.list",
    summary: "List local sessions, newest first",
    query: chatListQuery,
    response: z.array(chatSessionSchema),
    handle: ({ api, call, query }) => api.chat.list(call, query),
  }),
  defineRoute("GET /api/local/sessions/:id", {
    access: "read:chat",
    operation: "chat.get",
    summary: "Get a local session",
    params: { id },
    response: chatSessionSchema,
    handle: ({ api, call, params }) => api.chat.get(call, params.id),
  }),
  defineRoute("PUT /api/local/sessions/:id", {
    access: "write:chat",
    operation: "chat.update",
    summary: "Change the name or default worker of a local session",
    params: { id },
    body: chatUpdateSchema,
    response: chatSessionSchema,
    handle: ({ api, call, params, body }) => api.chat.update(call, params.id, body),
  }),
  defineRoute("DELETE /api/local/sessions/:id", {
    access: "write:chat",
    operation: "chat.delete",
    summary: "Delete a local session with its messages, replies and contexts",
    params: { id },
    response: deletedSchema,
    handle: ({ api, call, params }) => api.chat.delete(call, params.id),
  }),
  defineRoute("POST /api/local/sessions/:id/messages", {
    access: "write:chat",
    operation: "chat.send",
    summary: "Send a message; the stream carries the reply",
    params: { id },
    body: chatSendSchema,
    status: 202,
    response: queuedSchema,
    idempotent: true,
    handle: ({ api, call, params, body }) => api.chat.send(call, params.id, body),
  }),
  defineRoute("GET /api/local/sessions/:id/messages", {
    access: "read:chat",
    operation: "chat.messages",
    summary: "List the latest messages of a session by time; the header Link has the address of earlier ones",
    params: { id },
    query: historyQuery,
    response: z.array(chatMessageSchema),
    handle: ({ api, call, params, query }) => api.chat.messages(call, params.id, query),
  }),
  defineRoute("POST /api/local/sessions/:id/media", {
    access: "write:chat",
    operation: "chat.upload",
    summary: "Upload a file in the form field `file`",
    params: { id },
    form: NO_FIELDS,
    response: mediaSchema,
    idempotent: true,
    handle: async ({ api, streams, call, params, raw }) => {
      const target = await api.chat.prepareUpload(call, params.id);
      const { fields, file } = await readForm(raw, target, streams.clock);
      if (file === null) throw invalid("file", 'is missing. Send the file in the form field "file".');
      try {
        const input = parseInput(NO_FIELDS, fields);
        return await api.chat.keepUpload(await addFormFingerprint(call, input, file), params.id, file);
      } catch (error) {
        await file.discard();
        throw error;
      }
    },
  }),
  defineRoute("GET /api/local/sessions/:id/media/:name", {
    access: "read:chat",
    operation: "chat.media",
    summary: "Download an uploaded file",
    params: { id, name: z.string().min(1).max(300) },
    response: z.string(),
    responseType: "*/*",
    handle: async ({ api, call, params }) =>
      buildDownload(await api.chat.openMedia(call, params.id, params.name)),
  }),
  defineRoute("GET /api/local/sessions/:id/stream", {
    access: "read:chat",
    operation: "chat.stream",
    summary: "Stream replies and states as Server-Sent Events",
    params: { id },
    query: { after: parseInteger(0, Number.MAX_SAFE_INTEGER).optional() },
    response: z.string(),
    responseType: "text/event-stream",
    events: CONVERSATION_EVENTS,
    handle: async ({ api, streams, call, params, query, raw }) => {
      await api.chat.get(call, params.id);
      const client = buildStreamClient(raw, call, query.after);
      return await openConversationStream({ api, streams }, buildChatSessionKey(params.id), client);
    },
  }),
] as const;
