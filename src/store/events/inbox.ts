import type { InboxKind } from "../../domain/call/vocabulary.ts";
import {
  INBOX_KIND_MAX,
  INBOX_TITLE_MAX,
  type InboxDismissal,
  type InboxItem,
} from "../../domain/system/inbox.ts";
import type { JournalEntry } from "../../domain/system/journal.ts";
import type { Database, Statement } from "../db/database.ts";
import { buildPrune } from "../db/retention.ts";
import { TASK_IS_ACTIVE } from "../db/status_sql.ts";

// Empty columns of kinds of items that do not have them.
const NO_BUDGET = "'' as budget_id";
const NO_QUESTION = "'' as question_id";
const NO_RUN =
  `'' as worker_id, '' as worker_name, '' as execution_id, '' as engine, '' as task_id, ${NO_QUESTION}, ${NO_BUDGET}`;

// A text that is cut ends with a mark.
const cut = (text: string) =>
  `iif(length(${text}) > ${INBOX_TITLE_MAX}, substr(${text}, 1, ${INBOX_TITLE_MAX - 1}) || '…', ${text})`;

// The argument is the current time, for items that are snoozed.
const isShown = (kind: InboxKind, id: string) =>
  `not exists (
        select 1
        from inbox_dismissal
        where inbox_dismissal.kind = '${kind}' and inbox_dismissal.id = ${id} and (until is null or until > ?))`;

interface InboxQuery {
  /** The oldest time of failures. */
  since: number;
  now: number;
  /** Names of the secrets that cannot be read. */
  lost: readonly string[];
}

/** Lists everything that needs a person, newest first, without dismissed and snoozed items. */
export async function listInboxItems(db: Database, { since, now, lost }: InboxQuery): Promise<InboxItem[]> {
  const found = await Promise.all([
    findLostSecrets(db, lost, now),
    findLimitedEngines(db, now),
    findFailedRuns(db, since, now),
    findStoppedTasks(db, since, now),
    findFailedMessages(db, since, now),
    findUndelivered(db, since, now),
    findPausedWorkers(db, now),
    findPausedLaunchers(db, now),
    findPausedSchedules(db, now),
    findBlockingBudgets(db, now),
    findOpenQuestions(db, now),
    findFailedPushes(db, now),
    findEndedRounds(db, since, now),
  ]);
  return found.flat().sort((one, other) => other.at - one.at);
}

/** Lists runs that failed since a time and were not repeated. A repeat counts while it waits, too. Omits cancelled runs. */
function findFailedRuns(db: Database, since: number, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'run_failed' as kind, id, completed_at as at, ${cut("instruction")} as title,
      failure || iif(error = '', '', ': ' || ${cut("error")}) as detail, worker_id, worker_name,
      id as execution_id, message_id, session_key, engine, task_id, ${NO_QUESTION}, ${NO_BUDGET}
    from execution indexed by execution_completed
    where completed_at >= ? and status = 'failed' and failure <> 'cancelled'
      and not exists (
        select 1
        from execution as later
        where later.message_id = execution.message_id and later.id > execution.id
          and (later.task_id = execution.task_id
            or later.worker_id = execution.worker_id and later.instruction = execution.instruction))
      and not exists (
        select 1
        from task as repeat
        where repeat.message_id = execution.message_id and repeat.id > execution.id
          and repeat.worker_id = execution.worker_id and repeat.instruction = execution.instruction
          and repeat.status ${TASK_IS_ACTIVE} and repeat.type = 'immediate')
      and not exists (
        select 1
        from task as again
        where again.id = execution.task_id and again.status ${TASK_IS_ACTIVE} and again.type <> 'scheduled')
      and ${isShown("run_failed", "execution.id")}
    order by completed_at desc
    limit ${INBOX_KIND_MAX}`,
    [since, now],
  );
}

/** Lists tasks since a time that the failure of another one cancelled. */
function findStoppedTasks(db: Database, since: number, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'task_stopped' as kind, task.id, task.updated_at as at, ${cut("instruction")} as title,
      ${cut("reason")} as detail, worker_id, coalesce(worker.name, '') as worker_name,
      '' as execution_id, message_id, session_key, '' as engine, task.id as task_id, ${NO_QUESTION}, ${NO_BUDGET}
    from task indexed by task_stopped_at
    left join worker on worker.id = worker_id
    where task.updated_at >= ? and stopped_by <> '' and ${isShown("task_stopped", "task.id")}
    order by task.updated_at desc
    limit ${INBOX_KIND_MAX}`,
    [since, now],
  );
}

/** Lists messages since a time that could not be routed. */
function findFailedMessages(db: Database, since: number, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'message_failed' as kind, id, received_at as at, ${cut("content")} as title,
      error as detail, ${NO_RUN}, id as message_id, session_key
    from inbound_message indexed by inbound_received
    where received_at >= ? and status = 'failed' and ${isShown("message_failed", "inbound_message.id")}
    order by received_at desc
    limit ${INBOX_KIND_MAX}`,
    [since, now],
  );
}

/** Lists replies since a time whose delivery has ended without success. */
function findUndelivered(db: Database, since: number, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'undelivered' as kind, id, created_at as at, ${cut("content")} as title,
      error as detail, ${NO_RUN}, message_id, session_key
    from outbound_message indexed by outbound_given_up
    where status = 'failed' and due_at is null and created_at >= ? and ${
      isShown("undelivered", "outbound_message.id")
    }
    order by created_at desc
    limit ${INBOX_KIND_MAX}`,
    [since, now],
  );
}

function findOpenQuestions(db: Database, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'question' as kind, question.id, question.created_at as at, ${cut("text")} as title,
      coalesce((select group_concat(value, ' · ') from json_each(options)), '') as detail, worker_id,
      coalesce(worker.name, '') as worker_name, execution_id, message_id, session_key, '' as engine,
      question.id as question_id, question.task_id, ${NO_BUDGET}
    from question
    left join worker on worker.id = worker_id
    where status = 'open' and ${isShown("question", "question.id")}
    order by question.id desc
    limit ${INBOX_KIND_MAX}`,
    [now],
  );
}

function findPausedWorkers(db: Database, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'worker_paused' as kind, id, updated_at as at, name as title, '' as detail, id as worker_id,
      name as worker_name, '' as execution_id, '' as message_id, '' as session_key, engine, '' as task_id, ${NO_QUESTION},
      ${NO_BUDGET}
    from worker
    where paused = 1 and ${isShown("worker_paused", "worker.id")}
    order by updated_at desc
    limit ${INBOX_KIND_MAX}`,
    [now],
  );
}

function findPausedLaunchers(db: Database, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'launcher_paused' as kind, name as id, paused_at as at, name as title,
      ${cut("last_error")} as detail, ${NO_RUN}, '' as message_id, '' as session_key
    from launcher
    where paused_at is not null and ${isShown("launcher_paused", "launcher.name")}
    order by name
    limit ${INBOX_KIND_MAX}`,
    [now],
  );
}

function findPausedSchedules(db: Database, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'schedule_paused' as kind, task.id, task.updated_at as at,
      ${cut("iif(task.name = '', instruction, task.name)")} as title,
      ${cut("reason")} as detail, worker_id,
      coalesce(worker.name, '') as worker_name, '' as execution_id, message_id, session_key, '' as engine,
      task.id as task_id, ${NO_QUESTION}, ${NO_BUDGET}
    from task indexed by task_paused
    left join worker on worker.id = worker_id
    where task.paused = 1 and task.status ${TASK_IS_ACTIVE} and ${isShown("schedule_paused", "task.id")}
    order by task.updated_at desc
    limit ${INBOX_KIND_MAX}`,
    [now],
  );
}

function findBlockingBudgets(db: Database, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'budget_holds' as kind, id, coalesce(hard_notified_at, updated_at) as at, name as title, target as detail, '' as worker_id,
      '' as worker_name, '' as execution_id, '' as message_id, '' as session_key, '' as engine, '' as task_id,
      ${NO_QUESTION}, id as budget_id
    from budget
    where coalesce(lifted_until, 0) <= ? and exists (
      select 1 from task where task.status = 'pending' and task.held <> '' and task.held = 'budget:' || budget.id)
      and ${isShown("budget_holds", "budget.id")}
    order by at desc
    limit ${INBOX_KIND_MAX}`,
    [now, now],
  );
}

function findLimitedEngines(db: Database, now: number): Promise<InboxItem[]> {
  return db.read(
    `select 'engine_limited' as kind, engine as id, ? as at, engine as title,
      'the provider limits requests until ' || strftime('%Y-%m-%dT%H:%M:%fZ', rate_limit.until / 1000.0, 'unixepoch')
        as detail,
      '' as worker_id, '' as worker_name, '' as execution_id, '' as message_id, '' as session_key, engine,
      '' as task_id, ${NO_QUESTION}, ${NO_BUDGET}
    from rate_limit
    where rate_limit.until > ? and ${isShown("engine_limited", "engine")}
    order by engine`,
    [now, now, now],
  );
}

/** Lists branches whose push failed or was blocked. */
function findFailedPushes(db: Database, now: number): Promise<InboxItem[]> {
  const where = "tree.push in ('failed', 'blocked')";
  return listTreeItems(db, { kind: "push_failed", at: "tree.updated_at", detail: "push_error", where }, [
    now,
  ]);
}

/** Lists branches since a time with a failed check or a review after the last round. */
function findEndedRounds(db: Database, since: number, now: number): Promise<InboxItem[]> {
  const where = "rounds_over_at >= ?";
  const source = { kind: "rounds_over", at: "rounds_over_at", detail: "rounds_over", where } as const;
  return listTreeItems(db, source, [since, now]);
}

interface TreeSource {
  /** The kind, which also names the index `tree_<kind>`. */
  kind: "push_failed" | "rounds_over";
  /** SQL of the time, the detail and the condition. */
  at: string;
  detail: string;
  where: string;
}

function listTreeItems(
  db: Database,
  { kind, at, detail, where }: TreeSource,
  args: number[],
): Promise<InboxItem[]> {
  return db.read(
    `select '${kind}' as kind, tree.id, ${at} as at, tree.branch as title,
      ${cut(detail)} as detail, tree.worker_id, coalesce(worker.name, '') as worker_name,
      execution_id, coalesce(message_id, '') as message_id, coalesce(session_key, '') as session_key, '' as engine,
      coalesce(task_id, '') as task_id, ${NO_QUESTION}, ${NO_BUDGET}
    from tree indexed by tree_${kind}
    left join worker on worker.id = tree.worker_id
    left join execution on execution.id = tree.execution_id
    where ${where} and ${isShown(kind, "tree.id")}
    order by ${at} desc
    limit ${INBOX_KIND_MAX}`,
    args,
  );
}

async function findLostSecrets(db: Database, lost: readonly string[], now: number): Promise<InboxItem[]> {
  if (lost.length === 0) return [];
  return (await listShownSecrets(db, lost, now)).map((name) => ({
    ...NO_REFERENCES,
    kind: "secret_lost",
    id: name,
    at: now,
    title: name,
    detail: "another signing key encrypted this secret. Set it again, or restore that key",
  }));
}

const NO_REFERENCES = {
  worker_id: "",
  worker_name: "",
  execution_id: "",
  message_id: "",
  session_key: "",
  engine: "",
  question_id: "",
  task_id: "",
  budget_id: "",
};

/** Returns the names of lost secrets that are not snoozed. */
function listShownSecrets(db: Database, names: readonly string[], now: number): Promise<string[]> {
  return db.readColumn<string>(
    `select value from json_each(?) where ${
      isShown("secret_lost", "value")
    } order by value limit ${INBOX_KIND_MAX}`,
    [JSON.stringify(names), now],
  );
}

// Selects the references of an item for its event, by the id of the item. No row: the item does not exist.
const REFERENCES: Record<InboxKind, string> = {
  run_failed: `select worker_id, task_id, id as execution_id, message_id, session_key
    from execution
    where id = ? and status = 'failed'`,
  task_stopped: `select worker_id, id as task_id, message_id, session_key
    from task
    where id = ? and stopped_by <> ''`,
  message_failed:
    "select id as message_id, session_key from inbound_message where id = ? and status = 'failed'",
  undelivered: `select message_id, session_key
    from outbound_message
    where id = ? and status = 'failed' and due_at is null`,
  question:
    "select worker_id, execution_id, message_id, session_key from question where id = ? and status = 'open'",
  schedule_paused: `select worker_id, id as task_id, session_key
    from task
    where id = ? and paused = 1 and status ${TASK_IS_ACTIVE}`,
  worker_paused: "select id as worker_id from worker where id = ? and paused = 1",
  launcher_paused: "select '' as worker_id from launcher where name = ? and paused_at is not null",
  budget_holds: "select '' as worker_id from budget where id = ?",
  engine_limited: "select '' as worker_id from rate_limit where engine = ?",
  push_failed: `select worker_id, execution_id
    from tree
    where id = ? and push in ('failed', 'blocked')`,
  rounds_over: "select worker_id, execution_id from tree where id = ? and rounds_over_at is not null",
  secret_lost: "select '' as worker_id from secret where name = ?",
};

/** Finds the references of an item for its event. Null when the item does not exist or needs no person. */
export function findItemReferences(
  db: Database,
  { kind, id }: { kind: InboxKind; id: string },
): Promise<Omit<JournalEntry, "kind"> | null> {
  return db.first(REFERENCES[kind], [id]);
}

/** Hides an item. A later dismissal of the same item replaces this one. */
export function storeDismissal({ kind, id, until }: InboxDismissal, now: number): Statement {
  return {
    sql: `insert into inbox_dismissal (kind, id, until, created_at) values (?, ?, ?, ?)
      on conflict (kind, id) do update set until = excluded.until, created_at = excluded.created_at`,
    args: [kind, id, until, now],
  };
}

/** Prunes dismissals of failures that retention deleted, and ended snoozes. */
export const pruneDismissals = buildPrune(
  "inbox_dismissal",
  "created_at < ?1 and coalesce(until, 0) < ?1",
  "kind, id",
);
