import { z } from "zod";
import {
  createSession,
  deleteSession,
  getSession,
  keepUpload,
  listMessages,
  listSessions,
  openMedia,
  openUpload,
  sendMessage,
  updateSession,
} from "../../api/chat.ts";
import {
  chatCreateSchema,
  chatListQuery,
  chatMessageSchema,
  chatSendSchema,
  chatSessionKey,
  chatSessionSchema,
  chatUpdateSchema,
  historyQuery,
} from "../../domain/chat.ts";
import { invalid, ServiceError } from "../../domain/error.ts";
import { id, whole } from "../../domain/field.ts";
import { mediaSchema } from "../../domain/message.ts";
import { conversationStream } from "../conversation.ts";
import { parse } from "../input.ts";
import { route } from "../route.ts";
import { readForm } from "../upload.ts";
import { deletedSchema } from "./worker.ts";

const ROOT = "/api/local/sessions";
const NOTHING_MORE = z.strictObject({});

export const chatRoutes = [
  route({
    method: "POST",
    path: ROOT,
    access: "write:chat",
    operation: "chat.create",
    summary: "Create a local session",
    body: chatCreateSchema,
    status: 201,
    response: chatSessionSchema,
    idempotent: true,
    handle: ({ service, call, body }) => createSession(service, call, body),
  }),
  route({
    method: "GET",
    path: ROOT,
    access: "read:chat",
    operation: "chat.list",
    summary: "List local sessions, newest first",
    query: chatListQuery,
    status: 200,
    response: z.array(chatSessionSchema),
    paged: true,
    handle: async ({ service, call, query }) => ({ listing: await listSessions(service, call, query) }),
  }),
  route({
    method: "GET",
    path: `${ROOT}/:id`,
    access: "read:chat",
    operation: "chat.get",
    summary: "Get a local session",
    params: { id },
    status: 200,
    response: chatSessionSchema,
    handle: async ({ service, call, params }) => ({ value: await getSession(service, call, params.id) }),
  }),
  route({
    method: "PUT",
    path: `${ROOT}/:id`,
    access: "write:chat",
    operation: "chat.update",
    summary: "Change a local session's name or default worker",
    params: { id },
    body: chatUpdateSchema,
    status: 200,
    response: chatSessionSchema,
    handle: async ({ service, call, params, body }) => ({
      value: await updateSession(service, call, params.id, body),
    }),
  }),
  route({
    method: "DELETE",
    path: `${ROOT}/:id`,
    access: "write:chat",
    operation: "chat.delete",
    summary: "Delete a local session with its messages, replies and contexts",
    params: { id },
    status: 200,
    response: deletedSchema,
    handle: async ({ service, call, params }) => {
      await deleteSession(service, call, params.id);
      return { value: { status: "deleted" } };
    },
  }),
  route({
    method: "POST",
    path: `${ROOT}/:id/messages`,
    access: "write:chat",
    operation: "chat.send",
    summary: "Send a message; the reply comes on the stream",
    params: { id },
    body: chatSendSchema,
    status: 202,
    response: z.strictObject({ status: z.literal("queued"), message_id: id }).meta({ id: "Queued" }),
    idempotent: true,
    handle: ({ service, call, params, body }) => sendMessage(service, call, params.id, body),
  }),
  route({
    method: "GET",
    path: `${ROOT}/:id/messages`,
    access: "read:chat",
    operation: "chat.messages",
    summary: "List the messages of a session by time",
    params: { id },
    query: historyQuery,
    status: 200,
    response: z.array(chatMessageSchema),
    handle: async ({ service, call, params, query }) => ({
      items: await listMessages(service, call, params.id, query),
    }),
  }),
  route({
    method: "POST",
    path: `${ROOT}/:id/media`,
    access: "write:chat",
    operation: "chat.upload",
    summary: "Upload a file, in the form field `file`",
    params: { id },
    form: NOTHING_MORE,
    status: 200,
    response: mediaSchema,
    handle: async ({ service, call, params, raw }) => {
      await getSession(service, call, params.id);
      const { fields, file, originalName } = await readForm(raw, {
        maxBytes: service.config.limits.max_upload_bytes,
        open: (name, bytes) => openUpload(service, call, params.id, { name, bytes }),
      });
      if (file === null) throw invalid("file", 'is missing; send the file in the form field "file"');
      try {
        parse(NOTHING_MORE, fields);
        return { value: await keepUpload(service, call, params.id, file, originalName) };
      } catch (error) {
        await file.discard();
        throw error;
      }
    },
  }),
  route({
    method: "GET",
    path: `${ROOT}/:id/media/:name`,
    access: "read:chat",
    operation: "chat.media",
    summary: "Download an uploaded file",
    params: { id, name: z.string().min(1).max(300) },
    status: 200,
    response: z.string(),
    responseType: "*/*",
    handle: async ({ service, call, params }) => {
      return { response: download(await openMedia(service, call, params.id, params.name)) };
    },
  }),
  route({
    method: "GET",
    path: `${ROOT}/:id/stream`,
    access: "read:chat",
    operation: "chat.stream",
    summary: "Stream replies and states as Server-Sent Events",
    params: { id },
    query: { after: whole(0, Number.MAX_SAFE_INTEGER).optional() },
    status: 200,
    response: z.string(),
    responseType: "text/event-stream",
    handle: async ({ service, call, params, query, raw, claims }) => {
      await getSession(service, call, params.id);
      if (claims === null) throw new ServiceError("unauthenticated", "Cannot stream without a token");
      const lastEventId = raw.headers.get("last-event-id");
      const sessionKey = chatSessionKey(params.id);
      return {
        response: await conversationStream(service, { sessionKey, claims, lastEventId, after: query.after }),
      };
    },
  }),
] as const;

// Always as an attachment and never sniffed: an uploaded file must not run as a page of this server (reliability UPL-4).
function download({ file, size, mime, originalName: name }: Awaited<ReturnType<typeof openMedia>>): Response {
  const ascii = name.replace(/[^\x20-\x7e]|["\\%/]/g, "_").slice(0, 150) || "file";
  const exact = encodeURIComponent(name.slice(0, 150).toWellFormed()).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16)}`,
  );
  return new Response(file.readable, {
    headers: {
      "content-type": mime,
      "content-length": String(size),
      "content-disposition": `attachment; filename="${ascii}"; filename*=UTF-8''${exact}`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
      "cache-control": "private, no-store",
    },
  });
}
