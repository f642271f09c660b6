// A task with parents waits until they have ended (contract 25). Triggers (schema_parents.ts) copy how they ended and cancel children.
import { WAKEUP } from "../../base/wakeups.ts";
import type { JournalEntry } from "../../domain/system/journal.ts";
import type { ParentResult } from "../../domain/work/task_parent.ts";
import { type Database, guard, guardRows, type Statement } from "../db/database.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";
import { record } from "../events/journal.ts";
import { formatStopReason, hasEnded, selectResult } from "../migrations/schema_parents.ts";

export interface Parent {
  id: string;
  /** '' while it has not ended. */
  status: ParentResult["status"];
  depth: number;
  after_depth: number;
}

const STATUS = `iif(${hasEnded("parent")}, parent.status, '')`;

/** Finds tasks that others can wait for, by their id. Omits tasks outside the conversation that the caller is bound to. */
export async function findParents(
  db: Database,
  ids: readonly string[],
  boundTo: string | null,
): Promise<Map<string, Parent>> {
  const rows = await db.read<Parent>(
    `select parent.id, ${STATUS} as status, depth, after_depth
    from task as parent
    where id in (select value from json_each(?)) and (? is null or session_key = ?)`,
    [JSON.stringify(ids), boundTo, boundTo],
  );
  return new Map(rows.map((parent) => [parent.id, parent]));
}

export interface NewParent extends Pick<Parent, "id" | "status"> {
  taskId: string;
  position: number;
}

/** Stores the parents of new tasks, guarded by their existence and status. */
export function insertParents(parents: readonly NewParent[]): Statement[] {
  if (parents.length === 0) return [];
  return guardRows(parents.length, {
    sql: `insert into task_parent (task_id, position, parent_id, status, result, ended_at)
      select one.value ->> 0, one.value ->> 1, parent.id, ${STATUS},
        iif(${hasEnded("parent")}, ${selectResult("parent")}, ''),
        iif(${hasEnded("parent")}, parent.updated_at, null)
      from json_each(?) as one
      cross join task as parent on parent.id = one.value ->> 2 and ${STATUS} = one.value ->> 3
      order by one.key`,
    args: [JSON.stringify(parents.map(({ taskId, position, id, status }) => [taskId, position, id, status]))],
  });
}

/** Lists the ended parents of a task in their order. */
export function listParentResults(db: Database, taskId: string): Promise<ParentResult[]> {
  return db.read<ParentResult>(
    `select parent_id as task_id, status, result, ended_at
    from task_parent
    where task_id = ? and status <> ''
    order by position`,
    [taskId],
  );
}

/** Lists the parents that have not ended. */
export function listOpenParents(db: Database, taskId: string): Promise<string[]> {
  return db.readColumn<string>(
    "select parent_id from task_parent where task_id = ? and status = '' order by position",
    [taskId],
  );
}

/** Finds a failed or cancelled parent that keeps a task from running. Null without one. */
export function findStopper(
  db: Database,
  taskId: string,
): Promise<{ parent_id: string; status: string } | null> {
  return db.first(
    `select parent_id, task_parent.status
    from task_parent
    join task on task.id = task_id
    where task_id = ? and task.after_when = 'success' and task_parent.status ${HAS_FAILED}
    order by position
    limit 1`,
    [taskId],
  );
}

const HAS_FAILED = "in ('failed', 'cancelled')";

// The tasks that the failure of ?1 cancelled, down the tree. Another failed parent, or one that stays cancelled, blocks a task.
const TREE = `with recursive tree (id) as (
      select ?1
      union
      select task.id
      from tree
      join task on task.stopped_by = tree.id and task.stopped_by <> '' and task.status = 'cancelled'),
    blocked (id) as (
      select tree.id
      from tree
      join task_parent on task_parent.task_id = tree.id
      where tree.id <> ?1 and task_parent.status ${HAS_FAILED} and task_parent.parent_id not in (select id from tree)
      union
      select task_parent.task_id
      from blocked
      join task_parent on task_parent.parent_id = blocked.id
      where task_parent.task_id in (select id from tree))`;
const RETURNED = `${TREE} select id from tree where id <> ?1 and id not in (select id from blocked)`;
// The parent that keeps a blocked task cancelled.
const BLOCKER = `from task_parent as link
        where link.task_id = task.id and link.status ${HAS_FAILED}
          and (link.parent_id not in (select id from tree) or link.parent_id in (select id from blocked))
        order by link.position
        limit 1`;

/**
 * failed or cancelled -> pending: runs the same task again, and with it the tasks that its failure cancelled. Guarded: it is no schedule,
 * its worker exists, its last run has ended, and no failed parent keeps it from running.
 */
export function retryEndedTask(
  { task_id, ...keys }: Omit<JournalEntry, "kind"> & { task_id: string; actor: string },
  depth: number,
  now: number,
): Statement[] {
  return [
    ...guard(
      `update task
      set status = 'pending', due_at = ?, reason = '', stopped_by = '', held = '', held_until = null,
        run_no = run_no + 1, depth = max(depth, ?), updated_at = ?
      where id = ? and status ${HAS_FAILED} and type <> 'scheduled'
        and exists (select 1 from worker where worker.id = task.worker_id)
        and not exists (select 1 from execution where execution.id = task.execution_id and status ${EXECUTION_IS_OPEN})
        and not (after_when = 'success' and exists (
          select 1 from task_parent where task_parent.task_id = task.id and task_parent.status ${HAS_FAILED}))`,
      [now, depth, now, task_id],
      WAKEUP.dispatcher,
    ),
    record(now, { ...keys, task_id, kind: "task.retried" }),
    {
      sql: `insert into journal (at, kind, actor, session_key, worker_id, task_id, message_id, data)
        select ?2, 'task.retried', ?3, session_key, worker_id, id, message_id, json_object('after', ?1)
        from task
        where id in (${RETURNED})
        order by id`,
      args: [task_id, now, keys.actor],
    },
    {
      sql: `update task
        set stopped_by = (${TREE} select link.parent_id ${BLOCKER}),
          reason = (${TREE} select ${formatStopReason("link.parent_id", "link.status")} ${BLOCKER})
        where id in (${TREE} select id from blocked)`,
      args: [task_id],
    },
    {
      sql: `update task
        set status = 'pending', due_at = ?2, reason = '', stopped_by = '', updated_at = ?2
        where id in (${RETURNED})`,
      args: [task_id, now],
    },
  ];
}
