import type { Media } from "../domain/message.ts";
import { CONVERSATION_MAX_MESSAGES, type RunContext, type Said, workerPrompt } from "../domain/prompt.ts";
import { listHistory } from "../store/chat.ts";
import type { Database } from "../store/database.ts";
import { countExecutionsOf } from "../store/execution.ts";
import { findMemoryMap } from "../store/memory.ts";
import { listParts } from "../store/inbound.ts";
import { findTask } from "../store/task.ts";
import { findWorker } from "../store/worker.ts";
import type { Claim } from "./claim.ts";

/** What a run is told. */
export interface Briefing {
  context: RunContext;
  /** For an agent that begins, or goes on with a session that knows what was said. */
  prompt: string;
  /** For an agent that does not know any more what was said. */
  retelling: string;
  engineArgs: Record<string, string>;
}

/** Gathers what a run has to know: the worker, memory, the conversation, attachments (contract 4, point 7). */
export async function brief(db: Database, claim: Claim, ctl: string): Promise<Briefing> {
  const { execution, workDir } = claim;
  const [worker, task, global, session, parts, history, runs] = await Promise.all([
    findWorker(db, execution.worker_id),
    findTask(db, execution.task_id),
    findMemoryMap(db, "global"),
    findMemoryMap(db, execution.session_key),
    listParts(db, execution.message_id),
    listHistory(db, execution.session_key, { limit: CONVERSATION_MAX_MESSAGES }),
    countExecutionsOf(db, execution.task_id),
  ]);
  const answered = new Set(parts.map((part) => part.id));
  const conversation = history.map((json) => JSON.parse(json) as Said & { id: string });
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
      attachments: parts.map((part) => part.media).filter((media): media is Media => media !== null),
    },
    memory: { global, session },
    conversation: conversation.map(({ role, content, ts }) => ({ role, content, ts })),
  };
  // Of a schedule each run is a new one, whatever came of those before.
  const interrupted = task?.type !== "scheduled" && runs > 1;
  const said = conversation.filter(({ id }) => !answered.has(id));
  const { instruction } = execution;
  return {
    context,
    prompt: workerPrompt(context, instruction, { said: [], interrupted, ctl }),
    retelling: workerPrompt(context, instruction, { said, interrupted, ctl }),
    engineArgs: worker?.engine_args ?? {},
  };
}
