import { join } from "node:path";
import { chatSessionId } from "../domain/chat.ts";
import { conflict, invalid, notFound } from "../domain/error.ts";
import {
  hasConversation,
  type InboundFilter,
  type InboundMessage,
  LOCAL_PLATFORM,
  type Media,
  type MessageSend,
  type OutboundFilter,
  type OutboundMessage,
  outboundOf,
  platformOf,
} from "../domain/message.ts";
import type { Listing } from "../domain/page.ts";
import { BEE_SUBJECT, boundTo, type Caller } from "../domain/scope.ts";
import { newId } from "../base/id.ts";
import { IncomingFile } from "../files/uploads.ts";
import { findChatSession, insertUpload, touchChatSession } from "../store/chat.ts";
import type { Statement } from "../store/database.ts";
import { findInbound, listInbound as listInboundRows } from "../store/inbound.ts";
import { listOutbound as listOutboundRows, sendMessage as sendMessageRows } from "../store/outbound.ts";
import { findTrace } from "../store/trace.ts";
import { create, type Created } from "./create.ts";
import type { Call, Service } from "./service.ts";
import { uploadFolder } from "./session_files.ts";
import { checkUploads, noRoom, quotaOf } from "./upload_quota.ts";
import type { SourceType } from "../domain/vocabulary.ts";

/** GET /api/messages/inbound (interface 4.2, message list). */
export async function listInbound(service: Service, call: Call, filter: InboundFilter): Promise<Listing> {
  return await listInboundRows(service.db, filter, boundTo(call.caller), filter);
}

/** GET /api/messages/outbound (interface 4.2, message list-outbound). */
export async function listOutbound(service: Service, call: Call, filter: OutboundFilter): Promise<Listing> {
  return await listOutboundRows(service.db, filter, boundTo(call.caller), filter);
}

/** GET /api/messages/:id/trace: the life of a message; of a merged part, that of the whole. Throws `not_found`. */
export async function traceMessage(service: Service, call: Call, id: string): Promise<string> {
  const message = await findWhole(service, call.caller, id);
  if (message === null) throw notFound("message", id);
  const trace = await findTrace(service.db, message.id);
  const lists = Object.entries(trace).map(([name, rows]) => `"${name}":[${rows.join(",")}]`);
  return `{"message":${JSON.stringify(message)},${lists.join(",")}}`;
}

// What was merged has no life of its own: the last part carries it.
async function findWhole(service: Service, caller: Caller, id: string): Promise<InboundMessage | null> {
  const bound = boundTo(caller);
  const found = await findInbound(service.db, id, bound);
  return found?.merged_into ? await findInbound(service.db, found.merged_into, bound) : found;
}

/** A file that came in with a message, not kept yet. */
export interface SentFile {
  file: IncomingFile;
  originalName: string;
}

/** Opens a file that comes with a message, before it is known where it belongs. Throws `storage_full`. */
export async function openSentFile(service: Service, name: string, bytes: number): Promise<IncomingFile> {
  return await IncomingFile.open(join(service.paths.uploads, INCOMING), newId(), name, bytes);
}

const INCOMING = "incoming";

/**
 * POST /api/messages: says something more in the conversation of a message: text, a file, or both (interface 4.2,
 * message send). Throws `invalid_request`, `not_found` from a run whose message it is not, `conflict`.
 */
export async function sendMessage(
  service: Service,
  call: Call,
  input: MessageSend,
  sent: SentFile | null,
): Promise<Created> {
  const created = await create(service, call, async () => {
    if (sent === null && (input.content ?? "").trim() === "") {
      throw invalid("content", "must not be empty without a file");
    }
    const { sessionKey, message } = await findConversation(service, call.caller, input.message_id);
    await service.runLimits.take(service, call, "messages");
    const now = service.clock.now();
    const upload = sent === null ? null : await keepFile(service, sessionKey, sent, now);
    const sessionId = chatSessionId(sessionKey);
    const reply = outboundOf({
      id: newId(),
      session_key: sessionKey,
      platform: message?.platform ?? platformOf(sessionKey),
      message_id: message?.id ?? input.message_id,
      content: input.content ?? "",
      media: upload?.media ?? null,
      ...sourceOf(call.caller),
    }, now);
    return {
      statements: [
        ...(sessionId === null ? [] : touchChatSession(sessionId, now)),
        ...(upload?.statements ?? []),
        ...sendMessageRows(reply),
      ],
      response: shownOutbound(reply),
      lost: async () =>
        sessionId !== null && await findChatSession(service.db, sessionId) === null
          ? notFound("session", sessionId)
          : noRoom(service),
      ...(upload === null ? {} : { undo: () => Deno.remove(upload.media.path).catch(() => {}) }),
    };
  });
  if (created.replayed) await sent?.file.discard();
  return created;
}

async function findConversation(
  service: Service,
  caller: Caller,
  id: string,
): Promise<{ sessionKey: string; message: InboundMessage | null }> {
  const bound = boundTo(caller);
  const message = await findInbound(service.db, id, bound);
  if (message !== null) return { sessionKey: message.session_key, message };
  if (caller.run !== null && id === caller.run.message_id && !hasConversation(caller.run.session_key)) {
    throw conflict(
      "Cannot send: this task was given by a script and has no conversation; your final answer is kept with the execution",
    );
  }
  if (caller.run !== null) throw notFound("message", id);
  throw invalid("message_id", `no message has the id ${JSON.stringify(id)}`);
}

function shownOutbound(reply: ReturnType<typeof outboundOf>): OutboundMessage {
  const { execution_id: _run, due_at: _due, ...row } = reply;
  const { id, session_key, platform, message_id, content, media, status, source_type, source_id } = row;
  const { created_at, sent_at } = row;
  const said = { id, session_key, platform, message_id, content, media, status, source_type, source_id };
  return { ...said, attempt: 0, error: "", created_at, sent_at };
}

// Who says it follows from the token and is never taken from the request.
function sourceOf(caller: Caller): { source_type: SourceType; source_id: string; execution_id: string } {
  if (caller.subject === BEE_SUBJECT && caller.run !== null) {
    return { source_type: "bee", source_id: caller.run.execution_id, execution_id: caller.run.execution_id };
  }
  if (caller.run !== null) {
    return { source_type: "worker", source_id: caller.run.worker_id, execution_id: caller.run.execution_id };
  }
  return { source_type: "system", source_id: caller.subject, execution_id: "" };
}

async function keepFile(
  service: Service,
  sessionKey: string,
  sent: SentFile,
  now: number,
): Promise<{ media: Media; statements: Statement[] }> {
  const sessionId = chatSessionId(sessionKey);
  const platform = platformOf(sessionKey);
  if (sessionId === null) {
    throw conflict(
      `Cannot send a file: the platform ${platform} takes text only, ${LOCAL_PLATFORM} takes files`,
    );
  }
  if (await findChatSession(service.db, sessionId) === null) throw notFound("session", sessionId);
  await checkUploads(service, sessionId);
  const media = await sent.file.finish(uploadFolder(service, sessionId));
  const upload = { ...media, session_id: sessionId, original_name: sent.originalName, created_at: now };
  return { media, statements: insertUpload(upload, quotaOf(service)) };
}
