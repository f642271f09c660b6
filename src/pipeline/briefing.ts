import type { Media } from "../domain/message.ts";
import { CONVERSATION_MAX_MESSAGES, type RunContext } from "../domain/prompt.ts";
import { listHistory } from "../store/chat.ts";
import type { Database } from "../store/database.ts";
import { findMemoryMap } from "../store/memory.ts";
import { listParts } from "../store/inbound.ts";
import { findTask } from "../store/task.ts";
import { findWorker } from "../store/worker.ts";
import type { Claim } from "./dispatcher.ts";

/** What a run is told. */
export interface Briefing {
  context: RunContext;
  prompt: string;
  engineArgs: Record<string, string>;
}

/** Gathers what a run has to know: the worker, memory, the conversation, attachments (contract 4, point 7). */
export async function brief(db: Database, claim: Claim): Promise<Briefing> {
  const { execution, workDir } = claim;
  const [worker, task, global, session, parts, history] = await Promise.all([
    findWorker(db, execution.worker_id),
    findTask(db, execution.task_id),
    findMemoryMap(db, "global"),
    findMemoryMap(db, execution.session_key),
    listParts(db, execution.message_id),
    listHistory(db, execution.session_key, { limit: CONVERSATION_MAX_MESSAGES }),
  ]);
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
    conversation: history.map((json) => {
      const { role, content, ts } = JSON.parse(json);
      return { role, content, ts };
    }),
  };
  return { context, prompt: execution.instruction, engineArgs: worker?.engine_args ?? {} };
}
