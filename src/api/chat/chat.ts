import { endOpenRuns } from "./conversation.ts";
import {
  buildChatSessionKey,
  type ChatCreate,
  type ChatFilter,
  type ChatSend,
  type ChatSession,
  type ChatUpdate,
  type QueuedMessage,
} from "../../domain/chat/chat.ts";
import { invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import { type Media } from "../../domain/chat/message.ts";
import { LOCAL_PLATFORM } from "../../domain/call/message_id.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import { createId } from "../../base/id.ts";
import { describeFileInside } from "../../files/uploads.ts";
import {
  deleteChatSession,
  findChatSession,
  findUpload,
  insertChatSession,
  listChatSessions,
  touchChatSession,
  updateChatSession,
} from "../../store/chat/chat.ts";
import { type HistoryPart, readHistoryPage } from "../../store/chat/history.ts";
import { insertInbound } from "../../store/chat/inbound.ts";
import { cancelOwnerOccurrences } from "../../store/work/occurrence.ts";
import { cancelOwnerTasks } from "../../store/work/task_transitions.ts";
import { storeTrace } from "../../store/events/trace.ts";
import type { Database } from "../../store/db/database.ts";
import { findWorker } from "../../store/workers/worker.ts";
import { type Answer, answer, answerPage, DELETED } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import { checkChainDepth } from "../call/chain_depth.ts";
import type { Creation } from "../call/idempotency.ts";
import type { Deps } from "../call/services.ts";
import { getUploadFolder } from "./session_files.ts";
import type { DeleteResult } from "../../domain/call/deleted.ts";

/** Creates a chat session. Throws `invalid_request` for an unknown worker. */
export async function planSession(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  input: ChatCreate,
): Promise<Creation<ChatSession>> {
  await checkWorker(db, input.worker_id);
  const now = clock.now();
  const session: ChatSession = { id: createId(), ...input, created_at: now, updated_at: now };
  return {
    statements: [
      insertChatSession(session),
      recordBy(call, now, { kind: "chat.created", session_key: buildChatSessionKey(session.id) }),
    ],
    response: session,
  };
}

export async function listSessions({ db }: Deps<"db">, call: Call, filter: ChatFilter) {
  const reader = { sender: call.caller.subject, boundTo: getBoundSessionKey(call.caller) };
  return answerPage(await listChatSessions(db, reader, filter, filter));
}

export async function getSession({ db }: Deps<"db">, call: Call, id: string): Promise<Answer<ChatSession>> {
  return answer(await findVisibleSession(db, call, id));
}

/** Finds a session that the caller can see (contract 2.8). Throws `not_found`. */
export async function findVisibleSession(db: Database, call: Call, id: string): Promise<ChatSession> {
  const bound = getBoundSessionKey(call.caller);
  const visible = bound === null || bound === buildChatSessionKey(id);
  const session = visible ? await findChatSession(db, id) : null;
  if (session === null) throw notFound("session", id);
  return session;
}

/** Updates name and default worker. Throws `invalid_request` or `not_found`. */
export async function updateSession(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  id: string,
  input: ChatUpdate,
): Promise<Answer<ChatSession>> {
  await findVisibleSession(db, call, id);
  const worker_id = input.worker_id === undefined ? undefined : input.worker_id || null;
  await checkWorker(db, worker_id ?? null);
  const now = clock.now();
  await db.writeOr([
    ...updateChatSession(id, { name: input.name, worker_id }, now),
    recordBy(call, now, { kind: "chat.updated", session_key: buildChatSessionKey(id) }),
  ], () => notFound("session", id));
  return answer(await findVisibleSession(db, call, id));
}

async function checkWorker(db: Database, id: string | null): Promise<void> {
  if (id === null || await findWorker(db, id) !== null) return;
  throw invalid("worker_id", `no worker has the id ${JSON.stringify(id)}`);
}

/** Deletes a session with its messages, contexts and uploads, and ends its open work. Throws `not_found`. */
export async function deleteSession(
  { db, clock, paths, interruptRun, interruptRouting }: Deps<
    "db" | "clock" | "paths" | "interruptRun" | "interruptRouting"
  >,
  call: Call,
  id: string,
): Promise<Answer<DeleteResult>> {
  await findVisibleSession(db, call, id);
  const key = buildChatSessionKey(id);
  const now = clock.now();
  await db.writeOr([
    ...deleteChatSession(id, key),
    cancelOwnerOccurrences({ session_key: key }, now),
    cancelOwnerTasks({ session_key: key }, "session deleted", now),
    recordBy(call, now, { kind: "chat.deleted", session_key: key }),
  ], () => notFound("session", id));
  await endOpenRuns({ db, interruptRun, interruptRouting }, key);
  await Deno.remove(getUploadFolder(paths, id), { recursive: true }).catch(() => {});
  return DELETED;
}

/** Stores a message before acknowledging it. Throws `invalid_request`, `not_found` or `rate_limited`. */
export async function planMessage(
  { db, clock, paths, limits, runLimits }: Deps<"db" | "clock" | "paths" | "limits" | "runLimits">,
  call: Call,
  id: string,
  input: ChatSend,
): Promise<Creation<QueuedMessage>> {
  await findVisibleSession(db, call, id);
  const media = input.media_path === undefined
    ? null
    : await findSessionFile({ db, paths }, id, input.media_path);
  if (media === null && input.content.trim() === "") {
    throw invalid("content", "must not be empty without a file");
  }
  const depth = await checkChainDepth({ limits, runLimits }, call, "send the message");
  await runLimits.take(call, "messages");
  const now = clock.now();
  const messageId = createId();
  const key = buildChatSessionKey(id);
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
        alone: input.alone,
        reply_to: input.reply_to ?? "",
        is_direct: true,
        depth,
        received_at: now,
      }, limits.max_waiting_messages),
      ...storeTrace([messageId], call.trace, now),
      recordBy(call, now, { kind: "message.received", session_key: key, message_id: messageId }),
    ],
    response: { status: "queued" as const, message_id: messageId },
    lost: async () =>
      await findChatSession(db, id) === null
        ? notFound("session", id)
        : buildTooManyWaiting(limits.max_waiting_messages),
  };
}

function buildTooManyWaiting(most: number): ServiceError {
  return new ServiceError(
    "rate_limited",
    `Cannot accept the message: ${most} messages of this session are waiting. Try again later.`,
    { retry_after_s: 5 },
  );
}

async function findSessionFile(
  { db, paths }: Deps<"db" | "paths">,
  id: string,
  path: string,
): Promise<Media> {
  const found = await describeFileInside(getUploadFolder(paths, id), path);
  if (found === null) {
    throw invalid(
      "media_path",
      "must be a file in this session's upload directory. Upload it to …/media first.",
    );
  }
  return await findUpload(db, found.path) ?? found;
}

/** Lists a session's messages, oldest first. Throws `not_found`. */
export async function listMessages({ db }: Deps<"db">, call: Call, id: string, part: HistoryPart) {
  await findVisibleSession(db, call, id);
  const { json, total, next } = await readHistoryPage(db, buildChatSessionKey(id), part);
  return { json, total, next: next === null ? null : { name: "before", value: next } };
}
