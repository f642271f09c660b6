import { join } from "node:path";
import type { z } from "zod";
import {
  type chatCreateSchema,
  type chatSendSchema,
  type ChatSession,
  chatSessionKey,
  type chatUpdateSchema,
} from "../domain/chat.ts";
import { invalid, notFound, ServiceError } from "../domain/error.ts";
import { isId } from "../domain/field.ts";
import { LOCAL_PLATFORM, type Media } from "../domain/message.ts";
import type { Listing, Page } from "../domain/page.ts";
import { boundTo } from "../domain/scope.ts";
import { newId } from "../base/id.ts";
import { fileInside, IncomingFile, openInside } from "../files/uploads.ts";
import {
  deleteChatSession,
  findChatSession,
  findOriginalName,
  findUpload,
  type HistoryPart,
  insertChatSession,
  insertUpload,
  listChatSessions,
  listHistory,
  touchChatSession,
  updateChatSession,
} from "../store/chat.ts";
import { listOpenExecutionsOf } from "../store/execution.ts";
import { record } from "../store/journal.ts";
import { insertInbound } from "../store/inbound.ts";
import { cancelTasksOf } from "../store/task_move.ts";
import { findWorker } from "../store/worker.ts";
import { create, type Created, lookAgain } from "./create.ts";
import type { Call, Service } from "./service.ts";
import { inSession, uploadFolder } from "./session_files.ts";
import { checkUploads, noRoom, quotaOf } from "./upload_quota.ts";

/** POST /api/local/sessions (interface 4.1). Throws `invalid_request` for an unknown worker. */
export function createSession(
  service: Service,
  call: Call,
  input: z.output<typeof chatCreateSchema>,
): Promise<Created> {
  return create(service, call, async () => {
    await checkWorker(service, input.worker_id);
    const now = service.clock.now();
    const session: ChatSession = { id: newId(), ...input, created_at: now, updated_at: now };
    return {
      statements: [
        insertChatSession(session),
        record(now, {
          kind: "chat.created",
          session_key: chatSessionKey(session.id),
          actor: call.caller.subject,
        }),
      ],
      response: session,
    };
  });
}

/** GET /api/local/sessions, newest first. */
export async function listSessions(service: Service, call: Call, page: Page): Promise<Listing> {
  return await listChatSessions(service.db, boundTo(call.caller), page);
}

/** GET /api/local/sessions/:id. Throws `not_found`. */
export async function getSession(service: Service, call: Call, id: string): Promise<ChatSession> {
  const bound = boundTo(call.caller);
  const visible = bound === null || bound === chatSessionKey(id);
  const session = visible ? await findChatSession(service.db, id) : null;
  if (session === null) throw notFound("session", id);
  return session;
}

/** PUT /api/local/sessions/:id: name and default worker (contract 3, Local chat). Throws `invalid_request`, `not_found`. */
export function updateSession(
  service: Service,
  call: Call,
  id: string,
  input: z.output<typeof chatUpdateSchema>,
): Promise<ChatSession> {
  return lookAgain(() => changeSession(service, call, id, input));
}

async function changeSession(
  service: Service,
  call: Call,
  id: string,
  input: z.output<typeof chatUpdateSchema>,
): Promise<ChatSession> {
  const { db, clock } = service;
  const session = await getSession(service, call, id);
  const workerId = input.worker_id === undefined ? session.worker_id : input.worker_id || null;
  await checkWorker(service, workerId);
  const now = clock.now();
  const changed = { ...session, name: input.name ?? session.name, worker_id: workerId, updated_at: now };
  await db.writeOr([
    ...updateChatSession(changed),
    record(now, { kind: "chat.updated", session_key: chatSessionKey(id), actor: call.caller.subject }),
  ], () => notFound("session", id));
  return changed;
}

async function checkWorker(service: Service, id: string | null): Promise<void> {
  if (id === null || await findWorker(service.db, id) !== null) return;
  throw invalid("worker_id", `no worker has the id ${JSON.stringify(id)}`);
}

/**
 * DELETE /api/local/sessions/:id: messages, replies, contexts and uploads go, its open work is cancelled and ended, the
 * coordinator's for it too (interface 3, contract 3). Throws `not_found`.
 */
export async function deleteSession(service: Service, call: Call, id: string): Promise<void> {
  const { db, clock } = service;
  await getSession(service, call, id);
  const key = chatSessionKey(id);
  const now = clock.now();
  await db.writeOr([
    ...deleteChatSession(id, key),
    cancelTasksOf({ session_key: key }, "session deleted", now),
    record(now, { kind: "chat.deleted", session_key: key, actor: call.caller.subject }),
  ], () => notFound("session", id));
  await service.interruptRouting(key);
  const open = await listOpenExecutionsOf(db, key);
  await Promise.all(open.map((executionId) => service.interrupt(executionId)));
  await Deno.remove(uploadFolder(service, id), { recursive: true }).catch(() => {});
}

/**
 * POST /api/local/sessions/:id/messages: stored before it is acknowledged (interface 4.1, contract 4). Throws
 * `invalid_request`, `not_found`, and `rate_limited` when too many messages wait.
 */
export async function sendMessage(
  service: Service,
  call: Call,
  id: string,
  input: z.output<typeof chatSendSchema>,
): Promise<Created> {
  const { db, clock, config } = service;
  return await create(service, call, async () => {
    await getSession(service, call, id);
    const media = input.media_path === undefined
      ? null
      : await findSessionFile(service, id, input.media_path);
    if (media === null && input.content.trim() === "") {
      throw invalid("content", "must not be empty without a file");
    }
    await service.runLimits.take(service, call, "messages");
    const now = clock.now();
    const messageId = newId();
    const key = chatSessionKey(id);
    return {
      statements: [
        ...touchChatSession(id, now),
        ...insertInbound({
          id: messageId,
          session_key: key,
          platform: LOCAL_PLATFORM,
          platform_message_id: messageId,
          sender: call.caller.subject,
          content: input.content,
          media,
          received_at: now,
        }, config.limits.max_waiting_messages),
        record(now, {
          kind: "message.received",
          session_key: key,
          message_id: messageId,
          actor: call.caller.subject,
        }),
      ],
      response: { status: "queued", message_id: messageId },
      lost: async () =>
        await findChatSession(db, id) === null ? notFound("session", id) : tooManyWaiting(service),
    };
  });
}

function tooManyWaiting(service: Service): ServiceError {
  const { max_waiting_messages } = service.config.limits;
  return new ServiceError(
    "rate_limited",
    `Cannot take the message: ${max_waiting_messages} messages of this session wait already; try again`,
    { retry_after_s: 5 },
  );
}

async function findSessionFile(service: Service, id: string, path: string): Promise<Media> {
  const found = await fileInside(uploadFolder(service, id), path);
  if (found === null) {
    throw invalid(
      "media_path",
      "must be a file in this session's upload directory; upload it to …/media first",
    );
  }
  return await findUpload(service.db, found.path) ?? found;
}

/** GET /api/local/sessions/:id/messages, ascending by time. Throws `not_found`. */
export async function listMessages(
  service: Service,
  call: Call,
  id: string,
  part: HistoryPart,
): Promise<string[]> {
  await getSession(service, call, id);
  return await listHistory(service.db, chatSessionKey(id), part);
}

/** Opens a file for an upload into a session. Throws `not_found`, `storage_full`. */
export async function openUpload(
  service: Service,
  call: Call,
  id: string,
  file: { name: string; bytes: number },
): Promise<IncomingFile> {
  await getSession(service, call, id);
  await checkUploads(service, id);
  return await inSession(
    service,
    id,
    () => IncomingFile.open(uploadFolder(service, id), newId(), file.name, file.bytes),
  );
}

/** POST /api/local/sessions/:id/media: keeps what came in and answers where it lies (interface 4.1). Throws `not_found`, `storage_full`. */
export function keepUpload(
  service: Service,
  call: Call,
  id: string,
  file: IncomingFile,
  originalName: string,
): Promise<Media> {
  return inSession(service, id, async () => {
    const media = await file.finish();
    const now = service.clock.now();
    const upload = { ...media, session_id: id, original_name: originalName, created_at: now };
    try {
      await service.db.writeOr([
        ...touchChatSession(id, now),
        ...insertUpload(upload, quotaOf(service)),
        record(now, {
          kind: "upload.stored",
          session_key: chatSessionKey(id),
          actor: call.caller.subject,
          data: { path: media.path, size: media.size },
        }),
      ], () => noRoom(service));
    } catch (error) {
      await Deno.remove(media.path).catch(() => {});
      throw error;
    }
    return media;
  });
}

/** A stored file of a session, open, with the name it came under. Whoever gets it closes it. Throws `not_found`. */
export async function openMedia(
  service: Service,
  call: Call,
  id: string,
  name: string,
): Promise<{ file: Deno.FsFile; size: number; mime: string; originalName: string }> {
  await getSession(service, call, id);
  const safe = isId(id) && !/[/\\]/.test(name) && name !== "." && name !== "..";
  const folder = uploadFolder(service, id);
  const found = safe ? await openInside(folder, join(folder, name)) : null;
  if (found === null) throw notFound("file", name);
  const { file, path, size } = found;
  try {
    const stored = await findUpload(service.db, path);
    const originalName = await findOriginalName(service.db, path) ?? name;
    return { file, size, mime: stored?.mime ?? "application/octet-stream", originalName };
  } catch (error) {
    file.close();
    throw error;
  }
}
