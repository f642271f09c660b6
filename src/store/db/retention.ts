// Deletes only ended objects: each statement checks that itself and deletes one batch at most (reliability DUR-11).
import type { Database, Statement } from "./database.ts";
import { EXECUTION_HAS_ENDED, MESSAGE_IS_ROUTED, TASK_HAS_ENDED, TASK_IS_ACTIVE } from "./status_sql.ts";

/** Most rows that one statement deletes, some milliseconds of work. */
export const BATCH_ROWS = 200;

/** Lists up to a batch of executions that ended before `before`, without the latest executions of active tasks. */
export function listOldExecutions(db: Database, before: number): Promise<string[]> {
  return db.readColumn<string>(
    `select id
    from execution
    where completed_at < ? and +status ${EXECUTION_HAS_ENDED} and not exists (
      select 1 from task where task.id = execution.task_id and execution_id = execution.id and status ${TASK_IS_ACTIVE})
    order by completed_at
    limit ?`,
    [before, BATCH_ROWS],
  );
}

export function deleteExecutions(ids: string[]): Statement {
  return {
    sql:
      `delete from execution where id in (select value from json_each(?)) and status ${EXECUTION_HAS_ENDED}`,
    args: [JSON.stringify(ids)],
  };
}

/** Deletes up to a batch of rows of one kind that are older than `before`. Returns one row for each. */
export type Prune = (before: number) => Statement;

/** Builds a Prune of the rows that meet `condition`, whose only argument is `before`. */
export function buildPrune(table: string, condition: string, key = "id"): Prune {
  return (before) => ({
    sql: `delete from ${table}
      where (${key}) in (select ${key} from ${table} where ${condition} limit ?)
      returning 1`,
    args: [before, BATCH_ROWS],
  });
}

export const pruneTasks = buildPrune(
  "task",
  `status ${TASK_HAS_ENDED} and updated_at < ? and not exists (select 1 from execution where task_id = task.id)`,
);

export const pruneBeeRuns = buildPrune(
  "bee_run",
  "completed_at is not null and completed_at < ? and status <> 'running'",
);

/** Prunes routed messages, except those that an active task still answers. */
export const pruneInbound = buildPrune(
  "inbound_message",
  `received_at < ? and +status ${MESSAGE_IS_ROUTED} and not exists (
    select 1
    from task
    where message_id = coalesce(inbound_message.merged_into, inbound_message.id) and status ${TASK_IS_ACTIVE})`,
);

export const pruneSentReplies = buildPrune("outbound_message", "sent_at < ? and +status = 'sent'");

/** Prunes replies without further deliveries. */
export const pruneUndeliveredReplies = buildPrune(
  "outbound_message",
  "status = 'failed' and due_at is null and created_at < ?",
);

/** Prunes ended questions, except those whose answer has yet to reach the worker. */
export const pruneQuestions = buildPrune(
  "question",
  `created_at < ? and status <> 'open'
    and (status <> 'answered' or task_id = '' or seen_at is not null)
    and not exists (select 1 from task where task.id = answer_task_id and task.status ${TASK_IS_ACTIVE})`,
);

/** Prunes words for runs whose executions are gone. */
export const pruneSteers = buildPrune(
  "steer",
  "created_at < ? and not exists (select 1 from execution where execution.id = steer.execution_id)",
);

/** Prunes events that no enabled webhook has yet to deliver (contract 11). */
export const pruneJournal = buildPrune(
  "journal",
  "at < ? and seq <= coalesce((select min(cursor) from webhook where enabled = 1), seq) order by at",
  "seq",
);

/** Prunes events regardless of pending deliveries. */
export const pruneUndeliveredEvents = buildPrune("journal", "at < ? order by at", "seq");

/** Prunes ended occurrences. An open one, blocked by a budget for example, starts only while its row exists. */
export const pruneOccurrences = buildPrune(
  "occurrence",
  "created_at < ? and status not in ('pending', 'gating', 'running')",
  "task_id, run_no",
);

export const pruneAnswers = buildPrune("idempotency", "created_at < ?", "key");

export const pruneRefreshTokens = buildPrune("refresh_token", "expires_at < ?");

export const pruneUsage = buildPrune("usage", "bucket_start < ? / 900000", "bucket_start, worker_id");

export const pruneQueueWaits = buildPrune("queue_wait_stats", "bucket_start < ? / 900000", "bucket_start");

/** Lists the paths of up to a batch of uploads older than `before` that no message refers to. */
export function listOldUploads(db: Database, before: number): Promise<string[]> {
  return db.readColumn<string>(
    `select path
    from upload
    where created_at < ?
      and not exists (select 1 from inbound_message where media <> 'null' and media ->> '$.path' = upload.path)
      and not exists (select 1 from outbound_message where media <> 'null' and media ->> '$.path' = upload.path)
    limit ?`,
    [before, BATCH_ROWS],
  );
}

export function deleteUploads(paths: string[]): Statement {
  return {
    sql: "delete from upload where path in (select value from json_each(?))",
    args: [JSON.stringify(paths)],
  };
}

/** Returns the paths that nothing in the database refers to. */
export function listUnknownPaths(db: Database, paths: string[]): Promise<string[]> {
  return db.readColumn<string>(
    `select value as path
    from json_each(?)
    where not exists (select 1 from upload where path = value)
      and not exists (select 1 from inbound_message where media <> 'null' and media ->> '$.path' = value)
      and not exists (select 1 from outbound_message where media <> 'null' and media ->> '$.path' = value)`,
    [JSON.stringify(paths)],
  );
}

/** Returns the ids that belong to no execution and to no run of the coordinator. */
export function listUnknownRuns(db: Database, ids: string[]): Promise<string[]> {
  return db.readColumn<string>(
    `select value as id
    from json_each(?)
    where not exists (select 1 from execution where execution.id = value)
      and not exists (select 1 from bee_run where bee_run.id = value)`,
    [JSON.stringify(ids)],
  );
}
