import type { ChatMessage } from "../domain/chat/chat.ts";
import { hasConversation, type Media } from "../domain/chat/message.ts";
import {
  buildWorkerPrompt,
  CONVERSATION_MAX_MESSAGES,
  type ConversationEntry,
  formatContextFile,
  type RunContext,
} from "../domain/chat/prompt.ts";
import { WORKER_SCOPES_DEFAULT } from "../domain/call/scope.ts";
import type { Engine, EngineSession } from "../engine/engine.ts";
import { listHistory } from "../store/chat/history.ts";
import type { Database } from "../store/db/database.ts";
import { countTaskExecutions } from "../store/work/execution.ts";
import { findMemoryMap } from "../store/workers/memory.ts";
import { listParts } from "../store/chat/inbound_part.ts";
import { findAskerInstruction } from "../store/work/question.ts";
import { findAskerContext, findContext, findMissedRuns } from "../store/chat/conversation_context.ts";
import { listParentResults } from "../store/work/task_parent.ts";
import { fitResults } from "../domain/work/task_parent.ts";
import { findTask } from "../store/work/task.ts";
import { findWorker } from "../store/workers/worker.ts";
import type { Claim } from "./claim.ts";
import type { Briefing } from "./launch_options.ts";
import type { Grant } from "./run_token.ts";

/** Returns the rights of a worker's run: the worker's scopes, or the default scopes (contract 2). */
export async function findGrant(db: Database, { execution: { worker_id } }: Claim): Promise<Grant> {
  return buildGrant(worker_id, (await findWorker(db, worker_id))?.scopes ?? []);
}

export function buildGrant(workerId: string, own: readonly string[]): Grant {
  return { subject: `worker:${workerId}`, scopes: own.length === 0 ? WORKER_SCOPES_DEFAULT : own };
}

/** Gathers the worker, memory, conversation and attachments for the prompt of a run (contract 4.7). */
export async function buildBriefing(
  db: Database,
  claim: Claim,
  engine: Pick<Engine, "name" | "agent">,
  { ctl, maxPromptBytes: maxBytes, pathOf = (path) => path }: {
    ctl: string;
    maxPromptBytes: number;
    /** Maps a file of the message to its path for the agent. */
    pathOf?: (path: string) => string;
  },
): Promise<Briefing> {
  const { execution, workDir } = claim;
  const [worker, task, global, memory, parts, history, runs, { session, missed }, origin, parents] =
    await Promise.all(
      [
        findWorker(db, execution.worker_id),
        findTask(db, execution.task_id),
        findMemoryMap(db, "global", maxBytes / 4),
        findMemoryMap(db, execution.session_key, maxBytes / 4),
        listParts(db, execution.message_id),
        listHistory(db, execution.session_key, { limit: CONVERSATION_MAX_MESSAGES, maxBytes }),
        countTaskExecutions(db, execution.task_id),
        findSession(db, claim, engine).then(async (session) => ({
          session,
          missed: await findMissed(db, claim, session),
        })),
        findAskerInstruction(db, execution.task_id),
        listParentResults(db, execution.task_id),
      ],
    );
  const answered = new Set(parts.map((part) => part.id));
  const conversation = history.map((json) => JSON.parse(json) as HistoryEntry);
  const context: RunContext = {
    worker: {
      id: execution.worker_id,
      name: execution.worker_name,
      description: worker?.description ?? "",
      memory: worker?.memory ?? "",
      constraints: worker?.constraints ?? "",
      work_dir: workDir,
    },
    task: { id: execution.task_id, type: task?.type ?? "immediate", attempt: execution.attempt },
    message: {
      id: execution.message_id,
      session_key: execution.session_key,
      attachments: parts.map((part) => part.media).filter((media): media is Media => media !== null)
        .map((media) => ({ ...media, path: pathOf(media.path) })),
    },
    memory: { global: global.entries, session: memory.entries },
    ...(global.left + memory.left === 0
      ? {}
      : { memory_left: { global: global.left, session: memory.left } }),
    conversation: conversation.map(({ role, content, ts }) => ({ role, content, ts })),
    ...(parents.length === 0 ? {} : { parents: fitResults(parents) }),
  };
  // Each run of a schedule starts anew, whatever the outcome of the previous one.
  const interrupted = task?.type !== "scheduled" && runs > 1 && !isFirstTry(claim, session);
  const earlier = conversation.filter(({ id, ts }) => !answered.has(id) && ts > (missed?.clearedAt ?? 0));
  // Runs of another engine are not in the session.
  const unseen = missed === null
    ? []
    : earlier.filter(({ id, reply_to }) => (reply_to ?? id) > missed.lastMessageId);
  const { instruction } = execution;
  return {
    context: formatContextFile(context, instruction),
    prompt: buildWorkerPrompt(context, instruction, {
      said: unseen,
      asked: session === null || missed !== null ? origin : "",
      interrupted,
      ctl,
      maxBytes,
    }),
    retelling: buildWorkerPrompt(context, instruction, {
      said: earlier,
      asked: origin,
      interrupted,
      ctl,
      maxBytes,
    }),
    session,
    extraArgs: new Map(Object.entries(worker?.engine_args ?? {})).get(engine.name) ?? "",
  };
}

// An engine replaces another one only before that one has done anything.
function isFirstTry({ execution: { fallback_from, attempt } }: Claim, session: EngineSession | null) {
  return fallback_from !== "" && attempt === 1 && session === null;
}

type HistoryEntry = ConversationEntry & Pick<ChatMessage, "id" | "reply_to">;

// Returns null when no other engine has worked in the conversation since the last run of the session (contract 24).
async function findMissed(db: Database, { execution, task }: Claim, session: EngineSession | null) {
  if (task.type !== "immediate" || !hasConversation(execution.session_key)) return null;
  return await findMissedRuns(db, { ...execution, session_id: session?.id ?? "" });
}

// Only immediate tasks continue a session, and only in its work directory, because most engines look for sessions there (contract 3,
// Session context; facts, engines 2.11).
async function findSession(
  db: Database,
  claim: Claim,
  engine: Pick<Engine, "name" | "agent">,
): Promise<EngineSession | null> {
  if (!engine.agent || claim.task.type !== "immediate") return null;
  const { execution } = claim;
  const origin = await findAskerContext(db, execution.task_id, engine.name);
  if (origin !== null && origin.work_dir === claim.workDir) {
    return { id: origin.session_id, usage: origin.usage };
  }
  const context = await findContext(db, execution);
  if (context === null || context.work_dir !== claim.workDir) return null;
  return { id: context.session_id, usage: context.usage };
}
