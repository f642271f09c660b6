import { INBOX_KIND_MAX, INBOX_TITLE_MAX, type InboxItem } from "../../domain/system/inbox.ts";
import type { Database } from "../db/database.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";

// Empty columns of kinds of items that do not have them.
const NO_BUDGET = "'' as budget_id";
const NO_QUESTION = "'' as question_id";
const NO_RUN =
  `'' as worker_id, '' as worker_name, '' as execution_id, '' as engine, '' as task_id, ${NO_QUESTION}, ${NO_BUDGET}`;

/** Lists runs that failed since a time and were not repeated. Omits cancelled runs. */
export function findFailedRuns(db: Database, since: number): Promise<InboxItem[]> {
  return db.read(
    `select 'run_failed' as kind, completed_at as at, substr(instruction, 1, ${INBOX_TITLE_MAX}) as title,
      failure || iif(error = '', '', ': ' || substr(error, 1, ${INBOX_TITLE_MAX})) as detail, worker_id, worker_name,
      id as execution_id, message_id, session_key, engine, task_id, ${NO_QUESTION}, ${NO_BUDGET}
    from execution indexed by execution_completed
    where completed_at >= ? and status = 'failed' and failure <> 'cancelled'
      and not exists (
        select 1
        from execution as later
        where later.message_id = execution.message_id and later.id > execution.id
          and (later.task_id = execution.task_id
            or later.worker_id = execution.worker_id and later.instruction = execution.instruction))
    order by completed_at desc
    limit ${INBOX_KIND_MAX}`,
    [since],
  );
}

/** Lists messages since a time that could not be routed. */
export function findFailedMessages(db: Database, since: number): Promise<InboxItem[]> {
  return db.read(
    `select 'message_failed' as kind, received_at as at, substr(content, 1, ${INBOX_TITLE_MAX}) as title,
      error as detail, ${NO_RUN}, id as message_id, session_key
    from inbound_message indexed by inbound_received
    where received_at >= ? and status = 'failed'
    order by received_at desc
    limit ${INBOX_KIND_MAX}`,
    [since],
  );
}

/** Lists replies since a time whose delivery has ended without success. */
export function findUndelivered(db: Database, since: number): Promise<InboxItem[]> {
  return db.read(
    `select 'undelivered' as kind, created_at as at, substr(content, 1, ${INBOX_TITLE_MAX}) as title,
      error as detail, ${NO_RUN}, message_id, session_key
    from outbound_message indexed by outbound_given_up
    where status = 'failed' and due_at is null and created_at >= ?
    order by created_at desc
    limit ${INBOX_KIND_MAX}`,
    [since],
  );
}

export function findOpenQuestions(db: Database): Promise<InboxItem[]> {
  return db.read(
    `select 'question' as kind, question.created_at as at, substr(text, 1, ${INBOX_TITLE_MAX}) as title,
      coalesce((select group_concat(value, ' · ') from json_each(options)), '') as detail, worker_id,
      coalesce(worker.name, '') as worker_name, execution_id, message_id, session_key, '' as engine,
      question.id as question_id, question.task_id, ${NO_BUDGET}
    from question
    left join worker on worker.id = worker_id
    where status = 'open'
    order by question.id desc
    limit ${INBOX_KIND_MAX}`,
  );
}

export function findPausedWorkers(db: Database): Promise<InboxItem[]> {
  return db.read(
    `select 'worker_paused' as kind, updated_at as at, name as title, '' as detail, id as worker_id,
      name as worker_name, '' as execution_id, '' as message_id, '' as session_key, engine, '' as task_id, ${NO_QUESTION},
      ${NO_BUDGET}
    from worker
    where paused = 1
    order by updated_at desc
    limit ${INBOX_KIND_MAX}`,
  );
}

export function findPausedSchedules(db: Database): Promise<InboxItem[]> {
  return db.read(
    `select 'schedule_paused' as kind, task.updated_at as at,
      substr(iif(task.name = '', instruction, task.name), 1, ${INBOX_TITLE_MAX}) as title,
      substr(reason, 1, ${INBOX_TITLE_MAX}) as detail, worker_id,
      coalesce(worker.name, '') as worker_name, '' as execution_id, message_id, session_key, '' as engine,
      task.id as task_id, ${NO_QUESTION}, ${NO_BUDGET}
    from task indexed by task_paused
    left join worker on worker.id = worker_id
    where task.paused = 1 and task.status ${TASK_IS_ACTIVE}
    order by task.updated_at desc
    limit ${INBOX_KIND_MAX}`,
  );
}

export function findBlockingBudgets(db: Database, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'budget_holds' as kind, coalesce(hard_notified_at, updated_at) as at, name as title, target as detail, '' as worker_id,
      '' as worker_name, '' as execution_id, '' as message_id, '' as session_key, '' as engine, '' as task_id,
      ${NO_QUESTION}, id as budget_id
    from budget
    where coalesce(lifted_until, 0) <= ? and exists (
      select 1 from task where task.status = 'pending' and task.held = 'budget:' || budget.id)
    order by at desc
    limit ${INBOX_KIND_MAX}`,
    [now],
  );
}
