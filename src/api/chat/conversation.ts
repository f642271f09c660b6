import type { ConversationFilter } from "../../domain/chat/conversation.ts";
import { getBoundSessionKey } from "../../domain/call/scope.ts";
import { type ConversationEvent, findReplayStart, listConversationEvents } from "../../store/chat/chat.ts";
import { listConversations as listConversationRows } from "../../store/chat/conversation.ts";
import { type Answer, answer, answerPage } from "../call/answer.ts";
import { type Call, recordBy } from "../call/call.ts";
import type { Deps } from "../call/services.ts";
import { resume, type StreamStart } from "../call/stream_start.ts";
import { notFound } from "../../domain/call/error.ts";
import type { Page } from "../../domain/call/page.ts";
import type { ClearResult } from "../../domain/chat/session.ts";
import { faultPoint } from "../../base/fault_point.ts";
import { listOpenConversationExecutionIds } from "../../store/work/execution.ts";
import { failUnroutedMessages } from "../../store/chat/inbound.ts";
import { record, recordIdle } from "../../store/events/journal.ts";
import { withdrawQuestions } from "../../store/work/question_transitions.ts";
import { deleteApprovals, listApprovals as listApprovalRows } from "../../store/work/approval.ts";
import {
  deleteContexts,
  discardRunContexts,
  listContexts as listContextRows,
} from "../../store/chat/conversation_context.ts";
import { cancelOwnerOccurrences } from "../../store/work/occurrence.ts";
import { cancelOwnerTasks } from "../../store/work/task_transitions.ts";

export type { ConversationEvent };

// A message is never split, so a step may be larger by one message.
const STEP = { events: 100, contentBytes: 256 * 1024 };
// After a reset the client gets this many of the latest events. Older messages are in the history.
const REPLAY_MAX_EVENTS = 1_000;

/** Lists the conversations of all platforms, latest first. A run sees only its own. */
export async function listConversations({ db }: Deps<"db">, call: Call, filter: ConversationFilter) {
  return answerPage(await listConversationRows(db, filter, getBoundSessionKey(call.caller), filter));
}

export function findStreamStart(
  { db }: Deps<"db">,
  sessionKey: string,
  wanted: number | null,
): Promise<StreamStart> {
  return resume(db, wanted, () => findReplayStart(db, sessionKey, REPLAY_MAX_EVENTS));
}

interface ConversationStep {
  /** The events after `after`, formatted by `render`. */
  rendered: Uint8Array;
  after: number;
  deleted: boolean;
}

/** Reads the events after number `after`. Parallel reads share the result of `render`. */
export function readConversation(
  { db }: Deps<"db">,
  sessionKey: string,
  after: number,
  render: (events: readonly ConversationEvent[]) => Uint8Array,
): Promise<ConversationStep> {
  const read = async () => {
    const events = await listConversationEvents(db, sessionKey, after, STEP);
    return {
      rendered: render(events),
      after: events.at(-1)?.seq ?? after,
      deleted: events.some((event) => event.kind === "chat.deleted"),
    };
  };
  return db.readCached(`conversation ${after} ${sessionKey}`, read, ({ rendered }) => rendered.length);
}

/** Lists the workers that have a context in a conversation. */
export async function listContexts({ db }: Deps<"db">, call: Call, sessionKey: string, paging: Page) {
  checkBound(call, sessionKey);
  return answerPage(await listContextRows(db, sessionKey, paging));
}

/** Lists the tool calls that a person allowed for the rest of a conversation, the latest first. */
export async function listApprovals({ db }: Deps<"db">, call: Call, sessionKey: string, paging: Page) {
  checkBound(call, sessionKey);
  return answerPage(await listApprovalRows(db, sessionKey, paging));
}

/** Cancels a conversation's active tasks, drops unrouted messages and deletes all contexts. */
export async function clearSession(
  { db, clock, interruptRun, interruptRouting }: Deps<"db" | "clock" | "interruptRun" | "interruptRouting">,
  call: Call,
  sessionKey: string,
): Promise<Answer<ClearResult>> {
  checkBound(call, sessionKey);
  const now = clock.now();
  const by = call.caller.subject;
  const { rows: [, tasks, contexts] } = await db.write([
    cancelOwnerOccurrences({ session_key: sessionKey }, now),
    cancelOwnerTasks({ session_key: sessionKey }, `session cleared by ${by}`, now),
    deleteContexts(sessionKey),
    discardRunContexts(sessionKey),
    failUnroutedMessages(sessionKey, "session cleared", now),
    ...withdrawQuestions({ session_key: sessionKey }, by, now),
    deleteApprovals(sessionKey),
    record(now, { kind: "session.cleared", session_key: sessionKey, actor: by }),
    recordIdle(now, sessionKey),
  ]);
  faultPoint("cancel.mid");
  await endOpenRuns({ db, interruptRun, interruptRouting }, sessionKey);
  return answer({ cancelled_tasks: tasks?.length ?? 0, cleared_contexts: countContexts(contexts) });
}

/** Ends the bee's run and all open executions of a conversation. */
export async function endOpenRuns(
  { db, interruptRun, interruptRouting }: Deps<"db" | "interruptRun" | "interruptRouting">,
  sessionKey: string,
): Promise<void> {
  await interruptRouting(sessionKey);
  const open = await listOpenConversationExecutionIds(db, sessionKey);
  await Promise.all(open.map((executionId) => interruptRun(executionId)));
}

export async function clearWorkerContext(
  { db, clock }: Deps<"db" | "clock">,
  call: Call,
  sessionKey: string,
  workerId: string,
): Promise<Answer<ClearResult>> {
  checkBound(call, sessionKey);
  const now = clock.now();
  const { rows } = await db.write([
    deleteContexts(sessionKey, workerId),
    discardRunContexts(sessionKey, workerId),
    deleteApprovals(sessionKey, workerId),
    recordBy(call, now, { kind: "context.cleared", session_key: sessionKey, worker_id: workerId }),
  ]);
  return answer({ cancelled_tasks: 0, cleared_contexts: countContexts(rows[0]) });
}

// A worker may have a second context, of the engine that replaced its own.
function countContexts(deleted: readonly Record<string, unknown>[] = []): number {
  return new Set(deleted.map(({ worker_id }) => worker_id)).size;
}

// A run sees only its own conversation (contract 2.8).
function checkBound(call: Call, sessionKey: string): void {
  const bound = getBoundSessionKey(call.caller);
  if (bound !== null && bound !== sessionKey) throw notFound("session", sessionKey);
}
