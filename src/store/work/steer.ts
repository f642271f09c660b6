// Words of people for a run in progress: queued -> sent -> delivered, or a task after the run (contract 23)
import { getSteerWakeup } from "../../base/wakeups.ts";
import {
  MAYBE_SEEN,
  type QueuedSteer,
  RUN_STEERS_MAX,
  type Steer,
  steerSchema,
} from "../../domain/work/steer.ts";
import type { Json } from "../../domain/call/json.ts";
import type { RunKeys } from "../../domain/call/run_identity.ts";
import { type Database, guard, insertGuarded, type Statement } from "../db/database.ts";
import { buildJsonSql, readJson } from "../db/json_projection.ts";
import { EXECUTION_HAS_ENDED, EXECUTION_IS_OPEN } from "../db/status_sql.ts";
import { recordTransition } from "../events/journal.ts";
import { insertImmediateTasks, type TaskValues } from "./task.ts";

const JSON_SQL = buildJsonSql("steer", steerSchema);

type NewSteer = Steer & RunKeys;

/** Stores words for a run, guarded by the run's limit. */
export function insertSteer(steer: NewSteer): Statement[] {
  const isAllowed = {
    sql: "(select count(*) from steer where execution_id = ?) < ?",
    args: [steer.execution_id, RUN_STEERS_MAX],
  };
  return insertGuarded("steer", { ...steer }, isAllowed, getSteerWakeup(steer.execution_id));
}

export function findSteerJson(db: Database, id: string): Promise<Json<Steer> | null> {
  return readJson(db, JSON_SQL, "from steer where id = ?", [id]);
}

/** Finds the latest open run of a conversation that answers a message of this sender. */
export function findOpenRun(
  db: Database,
  sessionKey: string,
  sender: string,
): Promise<RunKeys & { worker_name: string } | null> {
  return db.first(
    `select execution.session_key, execution.worker_id, execution.task_id, execution.id as execution_id,
      execution.message_id, execution.worker_name
    from execution
    join inbound_message on inbound_message.id = execution.message_id
    where execution.session_key = ? and execution.status ${EXECUTION_IS_OPEN} and inbound_message.sender = ?
    order by execution.id desc
    limit 1`,
    [sessionKey, sender],
  );
}

/** Lists the words that a run has yet to pass on, the oldest first. */
export function listQueuedSteers(db: Database, executionId: string): Promise<QueuedSteer[]> {
  return db.read<QueuedSteer>(
    "select id, content from steer where execution_id = ? and status = 'queued' order by id",
    [executionId],
  );
}

/** queued -> sent, while the run is in progress. Guarded. */
export function markSteerSent(id: string): Statement[] {
  return guard(
    `update steer
    set status = 'sent'
    where id = ? and status = 'queued' and exists (
      select 1 from execution where execution.id = steer.execution_id and execution.status ${EXECUTION_IS_OPEN})`,
    [id],
  );
}

/** sent -> queued: the agent did not take the words. */
export function returnSteer(id: string): Statement {
  return {
    sql: "update steer set status = 'queued' where id = ? and status = 'sent' and follow_up_task_id is null",
    args: [id],
  };
}

/** sent -> delivered: the agent has confirmed the words. */
export function markSteerDelivered(id: string, run: RunKeys, now: number): Statement[] {
  return recordTransition(
    {
      sql: `update steer
        set status = 'delivered', delivered_at = ?
        where id = ? and status = 'sent' and follow_up_task_id is null`,
      args: [now, id],
    },
    now,
    { kind: "execution.steer_delivered", ...run, data: { steer_id: id } },
  );
}

/** The run was lost or postponed: the next attempt of its task gets its words. */
export function carrySteers(executionId: string): Statement {
  return {
    sql: "update steer set carried = 1 where execution_id = ? and follow_up_task_id is null",
    args: [executionId],
  };
}

/**
 * The run has ended for good. Words that its agent has not confirmed become a task of the same worker in the same conversation. The words
 * of earlier attempts were in its prompt, so they are delivered.
 */
export function endSteers(
  { execution_id, task_id }: Pick<RunKeys, "execution_id" | "task_id">,
  followUpId: string,
  now: number,
): Statement[] {
  return [
    {
      sql: `update steer
        set carried = 0, status = 'delivered', delivered_at = coalesce(delivered_at, ?)
        where task_id = ? and carried = 1`,
      args: [now, task_id],
    },
    ...followUpSteers(execution_id, followUpId, now),
  ];
}

/** Makes one task of the words that the agent of an ended run has not confirmed. */
export function followUpSteers(executionId: string, followUpId: string, now: number): Statement[] {
  return [
    {
      sql: `update steer
        set follow_up_task_id = ?
        where execution_id = ? and status <> 'delivered' and carried = 0 and follow_up_task_id is null and exists (
          select 1 from execution where execution.id = steer.execution_id and execution.status ${EXECUTION_HAS_ENDED})`,
      args: [followUpId, executionId],
    },
    insertFollowUp(followUpId, now),
    {
      sql: `insert into journal (at, kind, session_key, worker_id, task_id, message_id, actor, data)
        select ?, 'task.created', session_key, worker_id, id, message_id, created_by,
          json_object('type', type, 'status', status)
        from task
        where id = ?`,
      args: [now, followUpId],
    },
  ];
}

function insertFollowUp(id: string, now: number): Statement {
  const sql = `from (
        select worker_id, session_key, message_id, task_id, min(created_by) as created_by,
          iif(max(status = 'sent'), ?, '') || group_concat(content, char(10, 10)) as words
        from (select * from steer where follow_up_task_id = ? order by id)
        group by worker_id, session_key, message_id, task_id
      ) as steered
      join worker on worker.id = steered.worker_id
      left join task as ended on ended.id = steered.task_id`;
  const values = { ...FOLLOW_UP_VALUES, id: { sql: "?", args: [id] } };
  return insertImmediateTasks(values, { sql, args: [MAYBE_SEEN, id] }, now);
}

/** Task columns from the words and from the task of the ended run. */
const FOLLOW_UP_VALUES: TaskValues = {
  message_id: { sql: "steered.message_id", args: [] },
  worker_id: { sql: "steered.worker_id", args: [] },
  session_key: { sql: "steered.session_key", args: [] },
  instruction: { sql: "steered.words", args: [] },
  created_by: { sql: "steered.created_by", args: [] },
  verify: { sql: "coalesce(ended.verify, 'null')", args: [] },
  deliver_to: { sql: "coalesce(ended.deliver_to, '')", args: [] },
  parent_task_id: { sql: "steered.task_id", args: [] },
  depth: { sql: "coalesce(ended.depth, 0)", args: [] },
};
