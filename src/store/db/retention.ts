// Only ended things are deleted: each statement checks that itself and deletes one batch at most (reliability DUR-11).
import type { Database, Statement } from "./database.ts";
import { EXECUTION_HAS_ENDED, MESSAGE_IS_ROUTED, TASK_HAS_ENDED, TASK_IS_ACTIVE } from "./status_sql.ts";

/** Rows that one statement deletes at most: some milliseconds of work. */
export const BATCH_ROWS = 200;

/** Up to a batch of executions that ended before `before`. The latest execution of an active task is kept. */
export async function listOldExecutions(db: Database, before: number): Promise<string[]> {
  const rows = await db.read<{ id: string }>(
    `select id
    from execution
    where completed_at < ? and +status ${EXECUTION_HAS_ENDED} and not exists (
      select 1 from task where task.id = execution.task_id and execution_id = execution.id and status ${TASK_IS_ACTIVE})
    order by completed_at
    limit ?`,
    [before, BATCH_ROWS],
  );
  return rows.map((row) => row.id);
}

/** Deletes those of these executions that have ended. */
export function deleteExecutions(ids: string[]): Statement {
  return {
    sql:
      `delete from execution where id in (select value from json_each(?)) and status ${EXECUTION_HAS_ENDED}`,
    args: [JSON.stringify(ids)],
  };
}

/** Deletes up to a batch of rows of one kind that are older than `before`; returns one row for each. */
export type Prune = (before: number) => Statement;

/** Tasks that ended and of which no execution is left. */
export const pruneTasks: Prune = (before) => ({
  sql: `delete from task
    where id in (
      select id
      from task
      where status ${TASK_HAS_ENDED} and updated_at < ? and not exists (
        select 1 from execution where task_id = task.id)
      limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** The coordinator's runs that ended. */
export const pruneBeeRuns: Prune = (before) => ({
  sql: `delete from bee_run
    where id in (
      select id from bee_run where completed_at is not null and completed_at < ? and status <> 'running' limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Messages that need no routing any more, unless an active task still answers them. */
export const pruneInbound: Prune = (before) => ({
  sql: `delete from inbound_message
    where id in (
      select id
      from inbound_message
      where received_at < ? and +status ${MESSAGE_IS_ROUTED} and not exists (
        select 1
        from task
        where message_id = coalesce(inbound_message.merged_into, inbound_message.id) and status ${TASK_IS_ACTIVE})
      limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Replies that were delivered. */
export const pruneSent: Prune = (before) => ({
  sql: `delete from outbound_message
    where id in (select id from outbound_message where sent_at < ? and +status = 'sent' limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Replies whose delivery was given up. */
export const pruneGivenUp: Prune = (before) => ({
  sql: `delete from outbound_message
    where id in (
      select id from outbound_message where status = 'failed' and due_at is null and created_at < ? limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Questions that are answered, expired or cancelled, unless the answer is still on its way to the worker. */
export const pruneQuestions: Prune = (before) => ({
  sql: `delete from question
    where id in (
      select id
      from question
      where created_at < ? and status <> 'open'
        and (status <> 'answered' or task_id = '' or seen_at is not null)
        and not exists (select 1 from task where task.id = answer_task_id and task.status ${TASK_IS_ACTIVE})
      limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Events that no webhook is owed (contract 11). */
export const pruneJournal: Prune = (before) => ({
  sql: `delete from journal
    where seq in (
      select seq
      from journal
      where at < ? and seq <= coalesce((select min(cursor) from webhook where enabled = 1), seq)
      order by at
      limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Events, whoever is owed them. */
export const pruneOwed: Prune = (before) => ({
  sql:
    "delete from journal where seq in (select seq from journal where at < ? order by at limit ?) returning 1",
  args: [before, BATCH_ROWS],
});

/** Firings of schedules that have ended. One that waits, for a budget perhaps, starts only while its row is there. */
export const pruneOccurrences: Prune = (before) => ({
  sql: `delete from occurrence
    where (task_id, run_no) in (
      select task_id, run_no
      from occurrence
      where created_at < ? and status not in ('pending', 'gating', 'running')
      limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Answers that are kept for repeated requests. */
export const pruneAnswers: Prune = (before) => ({
  sql:
    "delete from idempotency where key in (select key from idempotency where created_at < ? limit ?) returning 1",
  args: [before, BATCH_ROWS],
});

/** Refresh tokens that expired before `before`. */
export const pruneRefreshTokens: Prune = (before) => ({
  sql:
    "delete from refresh_token where id in (select id from refresh_token where expires_at < ? limit ?) returning 1",
  args: [before, BATCH_ROWS],
});

/** What runs used. */
export const pruneUsage: Prune = (before) => ({
  sql: `delete from usage
    where (bucket_start, worker_id) in (select bucket_start, worker_id from usage where bucket_start < ? / 900000 limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** How long runs waited. */
export const pruneWaited: Prune = (before) => ({
  sql: `delete from queue_wait_stats
    where bucket_start in (select bucket_start from queue_wait_stats where bucket_start < ? / 900000 limit ?)
    returning 1`,
  args: [before, BATCH_ROWS],
});

/** Paths of up to a batch of uploads older than `before` that no message refers to. */
export async function listOldUploads(db: Database, before: number): Promise<string[]> {
  const rows = await db.read<{ path: string }>(
    `select path
    from upload
    where created_at < ?
      and not exists (select 1 from inbound_message where media <> 'null' and media ->> '$.path' = upload.path)
      and not exists (select 1 from outbound_message where media <> 'null' and media ->> '$.path' = upload.path)
    limit ?`,
    [before, BATCH_ROWS],
  );
  return rows.map((row) => row.path);
}

/** Deletes the rows of these uploads. */
export function deleteUploads(paths: string[]): Statement {
  return {
    sql: "delete from upload where path in (select value from json_each(?))",
    args: [JSON.stringify(paths)],
  };
}

/** Those of these paths that nothing in the database refers to. */
export async function listUnknownPaths(db: Database, paths: string[]): Promise<string[]> {
  const rows = await db.read<{ path: string }>(
    `select value as path
    from json_each(?)
    where not exists (select 1 from upload where path = value)
      and not exists (select 1 from inbound_message where media <> 'null' and media ->> '$.path' = value)
      and not exists (select 1 from outbound_message where media <> 'null' and media ->> '$.path' = value)`,
    [JSON.stringify(paths)],
  );
  return rows.map((row) => row.path);
}

/** Those of these ids that belong to no execution and to no run of the coordinator. */
export async function listUnknownRuns(db: Database, ids: string[]): Promise<string[]> {
  const rows = await db.read<{ id: string }>(
    `select value as id
    from json_each(?)
    where not exists (select 1 from execution where execution.id = value)
      and not exists (select 1 from bee_run where bee_run.id = value)`,
    [JSON.stringify(ids)],
  );
  return rows.map((row) => row.id);
}
