import { join } from "node:path";
import { parseChatSessionId } from "../../domain/chat/chat.ts";
import { conflict, invalid, notFound } from "../../domain/call/error.ts";
import {
  buildOutbound,
  hasConversation,
  type InboundFilter,
  type InboundMessage,
  type Media,
  type MessageSend,
  type OutboundFilter,
  type OutboundMessage,
  parsePlatformName,
} from "../../domain/chat/message.ts";
import { formatJson, type Json } from "../../domain/call/json.ts";
import type { MessageTrace } from "../../domain/chat/trace.ts";
import { formatPlaceFolder } from "../../domain/chat/platform.ts";
import { BEE_SUBJECT, type Caller, getBoundSessionKey } from "../../domain/call/scope.ts";
import { stripEscapes } from "../../engine/protocol/transcript.ts";
import { createId } from "../../base/id.ts";
import { IncomingFile } from "../../files/uploads.ts";
import { findChatSession, insertUpload, touchChatSession } from "../../store/chat/chat.ts";
import type { Database, Statement } from "../../store/db/database.ts";
import { findInbound, listInbound as listInboundRows } from "../../store/chat/inbound.ts";
import {
  listOutbound as listOutboundRows,
  sendMessage as sendMessageRows,
} from "../../store/chat/outbound.ts";
import { findTrace } from "../../store/chat/trace.ts";
import { type Answer, answer, answerPage, requireFound } from "../call/answer.ts";
import type { Call } from "../call/call.ts";
import { createOnce, type Creation } from "../call/idempotency.ts";
import type { UploadTarget } from "./media.ts";
import type { Deps } from "../call/services.ts";
import { buildStorageFull, checkUploads, getUploadFolder, getUploadQuota } from "./session_files.ts";
import type { SourceType } from "../../domain/call/vocabulary.ts";
import { type Explain, EXPLAINED_WORKERS_MAX, type Explanation } from "../../domain/chat/explanation.ts";
import { explainRouting } from "../../domain/chat/routing.ts";
import { listCandidates } from "../../store/workers/worker.ts";

export async function listInbound({ db }: Deps<"db">, call: Call, filter: InboundFilter) {
  return answerPage(await listInboundRows(db, filter, getBoundSessionKey(call.caller), filter));
}

export async function listOutbound({ db }: Deps<"db">, call: Call, filter: OutboundFilter) {
  return answerPage(await listOutboundRows(db, filter, getBoundSessionKey(call.caller), filter));
}

/** Traces what happened to a message; a merged part shows the whole message. Throws `not_found`. */
export async function traceMessage(
  { db }: Deps<"db">,
  call: Call,
  id: string,
): Promise<Answer<MessageTrace>> {
  const message = requireFound(await findWhole(db, call.caller, id), "message", id);
  const trace = await findTrace(db, message.id);
  const lists = Object.entries(trace).map(([name, rows]) => `"${name}":[${rows.join(",")}]`);
  return { json: `{"message":${formatJson(message)},${lists.join(",")}}` as Json<MessageTrace> };
}

// Messages that were merged are routed as the last of them, which has the tasks and replies.
async function findWhole(db: Database, caller: Caller, id: string): Promise<InboundMessage | null> {
  const bound = getBoundSessionKey(caller);
  const found = await findInbound(db, id, bound);
  return found?.merged_into ? await findInbound(db, found.merged_into, bound) : found;
}

/** Prepares a file whose session is not known yet. Opening throws `storage_full`. */
export function prepareAttachment({ paths, limits }: Deps<"paths" | "limits">): UploadTarget {
  return {
    maxBytes: limits.max_upload_bytes,
    open: (name, bytes) => IncomingFile.open(join(paths.uploads, INCOMING), createId(), name, bytes),
  };
}

const INCOMING = "incoming";

/**
 * Sends text, a file or both to a message's conversation. Throws `invalid_request`, `conflict`, or `not_found` for a
 * run when the message is not in its conversation.
 */
export async function sendMessage(
  deps: Deps<"db" | "clock" | "paths" | "limits" | "runLimits" | "platforms">,
  call: Call,
  input: MessageSend,
  sent: IncomingFile | null,
): Promise<Answer<OutboundMessage>> {
  const created = await createOnce(deps, call, () => planMessage(deps, call, input, sent));
  if (created.replayed) await sent?.discard();
  return created;
}

async function planMessage(
  deps: Deps<"db" | "clock" | "paths" | "limits" | "runLimits" | "platforms">,
  call: Call,
  input: MessageSend,
  sent: IncomingFile | null,
): Promise<Creation<OutboundMessage>> {
  const { db, clock, runLimits } = deps;
  // A program that sends its output may color it, which only a terminal can show.
  const content = stripEscapes(input.content ?? "");
  if (sent === null && content.trim() === "") {
    throw invalid("content", "must not be empty without a file");
  }
  const { sessionKey, message } = await findConversation(db, call.caller, input.message_id);
  await runLimits.take(call, "messages");
  const now = clock.now();
  const upload = sent === null ? null : await storeFile(deps, sessionKey, sent, now);
  const sessionId = parseChatSessionId(sessionKey);
  const reply = buildOutbound({
    id: createId(),
    session_key: sessionKey,
    platform: message?.platform ?? parsePlatformName(sessionKey),
    message_id: message?.id ?? input.message_id,
    content,
    media: upload?.media ?? null,
    ...findSource(call.caller),
  }, now);
  return {
    statements: [
      ...(sessionId === null ? [] : touchChatSession(sessionId, now)),
      ...(upload?.statements ?? []),
      ...sendMessageRows(reply),
    ],
    response: buildOutboundJson(reply),
    lost: async () =>
      sessionId !== null && await findChatSession(db, sessionId) === null
        ? notFound("session", sessionId)
        : buildStorageFull(deps),
    ...(upload === null ? {} : { undo: () => Deno.remove(upload.media.path).catch(() => {}) }),
  };
}

async function findConversation(
  db: Database,
  caller: Caller,
  id: string,
): Promise<{ sessionKey: string; message: InboundMessage | null }> {
  const bound = getBoundSessionKey(caller);
  const message = await findInbound(db, id, bound);
  if (message !== null) return { sessionKey: message.session_key, message };
  if (caller.run !== null && id === caller.run.message_id && !hasConversation(caller.run.session_key)) {
    throw conflict(
      "Cannot send: a script created this task, so it has no conversation. Return the text as the final answer, which the execution stores.",
    );
  }
  if (caller.run !== null) throw notFound("message", id);
  throw invalid("message_id", `no message has the id ${JSON.stringify(id)}`);
}

function buildOutboundJson(reply: ReturnType<typeof buildOutbound>): OutboundMessage {
  const { execution_id: _run, due_at: next_attempt_at, ...row } = reply;
  const { id, session_key, platform, message_id, content, media, status, source_type, source_id } = row;
  const { question_id, created_at, sent_at } = row;
  const shown = { id, session_key, platform, message_id, content, media, status, source_type, source_id };
  return { ...shown, question_id, attempt: 0, error: "", next_attempt_at, created_at, sent_at };
}

// The sender comes from the token, never from the request.
function findSource(caller: Caller): { source_type: SourceType; source_id: string; execution_id: string } {
  if (caller.subject === BEE_SUBJECT && caller.run !== null) {
    return { source_type: "bee", source_id: caller.run.execution_id, execution_id: caller.run.execution_id };
  }
  if (caller.run !== null) {
    return { source_type: "worker", source_id: caller.run.worker_id, execution_id: caller.run.execution_id };
  }
  return { source_type: "system", source_id: caller.subject, execution_id: "" };
}

async function storeFile(
  deps: Deps<"db" | "paths" | "limits" | "platforms">,
  sessionKey: string,
  sent: IncomingFile,
  now: number,
): Promise<{ media: Media; statements: Statement[] }> {
  const sessionId = parseChatSessionId(sessionKey);
  const platform = parsePlatformName(sessionKey);
  if (deps.platforms.get(platform)?.platform?.takesFiles !== true) {
    throw conflict(`Cannot send a file: the platform ${platform} takes text only`);
  }
  if (sessionId !== null && await findChatSession(deps.db, sessionId) === null) {
    throw notFound("session", sessionId);
  }
  const place = formatPlaceFolder(sessionKey);
  await checkUploads(deps, place);
  const media = await sent.finish(getUploadFolder(deps.paths, place));
  const upload = { ...media, session_id: place, created_at: now };
  return { media, statements: insertUpload(upload, getUploadQuota(deps)) };
}

/** Explains which rule would route a message and how each worker matches. Sends nothing. */
export async function explainMessage(
  { db, bee }: Deps<"db" | "bee">,
  { session_key = "", content }: Explain,
): Promise<Answer<Explanation>> {
  const sessionId = parseChatSessionId(session_key);
  const session = sessionId === null ? null : await findChatSession(db, sessionId);
  const { rule, route, workers } = explainRouting(content, await listCandidates(db), {
    defaultWorkerId: session?.worker_id ?? null,
    withoutModel: bee.engine === "rules",
  });
  const chosen = route.to === "worker"
    ? workers.find(({ worker }) => worker.id === route.workerId)?.worker
    : undefined;
  return answer({
    rule,
    worker_id: chosen?.id ?? null,
    worker_name: chosen?.name ?? "",
    reason: route.to === "bee" ? `the coordinator\'s model decides (engine ${bee.engine})` : route.reason,
    reply: route.to === "nobody" ? route.text : "",
    workers: workers.slice(0, EXPLAINED_WORKERS_MAX).map(({ worker: { id, name, paused }, shared }) => ({
      id,
      name,
      paused,
      score: shared.length,
      words: shared,
    })),
  });
}
