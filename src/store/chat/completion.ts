import type { TaskStatus } from "../../domain/call/vocabulary.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";
import type { Database } from "../db/database.ts";

/** A task of a message, as far as an API client waits for it. */
export interface CompletionTask {
  id: string;
  status: TaskStatus;
  reason: string;
  execution_id: string | null;
  /** `<kind>:<id>` of the block, or "". */
  held: string;
  held_until: number | null;
  /** 1 while its worker is paused. */
  paused: number;
  /** 1 while a question about the message is open, whose answer may create a task. */
  is_asked: number;
}

// An agent that creates more tasks than this for one message gets its answer when the newest of them have ended.
const COMPLETION_TASKS_MAX = 1_000;

/** Lists the tasks of a message without its schedules: those that have not ended first, then the newest. */
export function listCompletionTasks(db: Database, messageId: string): Promise<CompletionTask[]> {
  return db.read<CompletionTask>(
    `select task.id, task.status, task.reason, task.execution_id, task.held, task.held_until,
      coalesce(worker.paused, 0) as paused,
      exists (
        select 1
        from question
        where session_key = task.session_key and status = 'open' and message_id = task.message_id) as is_asked
    from task
    left join worker on worker.id = task.worker_id
    where task.message_id = ? and task.type = 'immediate'
    order by task.status in ('pending', 'running') desc, task.id desc
    limit ?`,
    [messageId, COMPLETION_TASKS_MAX],
  );
}

interface CompletionOutcome {
  /** The last reply, or null without one. */
  content: string | null;
  input_tokens: number | null;
  output_tokens: number | null;
}

/** Reads the last reply to a message and the use of its runs. */
export function findOutcome(db: Database, messageId: string): Promise<CompletionOutcome | null> {
  return db.first<CompletionOutcome>(
    `select
      (select content from outbound_message where message_id = ?1 and question_id = '' order by id desc limit 1) as content,
      (select sum(input_tokens) from execution where message_id = ?1) as input_tokens,
      (select sum(output_tokens) from execution where message_id = ?1) as output_tokens`,
    [messageId],
  );
}

/** A message that a repeated request joins. */
interface JoinableMessage {
  id: string;
  session_key: string;
  received_at: number;
}

/**
 * Finds the latest message with this beginning of its platform's id, unless its task was cancelled, is being cancelled, or has ended before
 * `since`.
 */
export function findJoinable(
  db: Database,
  platform: string,
  beginning: string,
  since: number,
): Promise<JoinableMessage | null> {
  return db.first<JoinableMessage>(
    `select inbound_message.id, inbound_message.session_key, received_at
    from inbound_message
    join task on task.message_id = inbound_message.id
    left join execution on execution.id = task.execution_id
    where platform = ? and platform_message_id >= ? and platform_message_id < ?
      and (task.status ${TASK_IS_ACTIVE} or task.status <> 'cancelled' and task.updated_at >= ?)
      and coalesce(execution.cancelled_by, '') = ''
    order by inbound_message.id desc
    limit 1`,
    [platform, `${beginning}:`, `${beginning};`, since],
  );
}

/** A worker as a model. */
interface Model {
  id: string;
  name: string;
  created_at: number;
  /** 1 if no other worker has its name. */
  is_unique: number;
}

const MODELS_MAX = 10_000;

/** Lists the workers by name. */
export function listModels(db: Database): Promise<Model[]> {
  return db.read<Model>(
    `select id, name, created_at,
      not exists (select 1 from worker as other where other.name_key = worker.name_key and other.id <> worker.id) as is_unique
    from worker
    order by name_key, id
    limit ?`,
    [MODELS_MAX],
  );
}
