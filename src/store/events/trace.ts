// The rows from which the traces of messages and runs are built.
import type { TracedMessage, TracedReply, TracedRun } from "../../domain/system/telemetry.ts";
import type { RunOrigin } from "../../domain/system/trace.ts";
import type { Database, Statement } from "../db/database.ts";
import { buildPrune } from "../db/retention.ts";

/** Stores the trace of the caller who creates messages or tasks. "" stores nothing. */
export function storeTrace(ids: readonly string[], traceparent: string, now: number): Statement[] {
  if (traceparent === "") return [];
  return [{
    sql: "insert into trace (id, traceparent, created_at) select value, ?, ? from json_each(?)",
    args: [traceparent, now, JSON.stringify(ids)],
  }];
}

export const pruneTraces = buildPrune("trace", "created_at < ?", "id");

const CALLER = (id: string) => `coalesce((select traceparent from trace where trace.id = ${id}), '')`;

const ORIGIN = `execution.id as execution_id, ${CALLER("execution.task_id")} as task_trace,
      inbound_message.id as message_id, ${CALLER("inbound_message.id")} as message_trace,
      coalesce(task.type, '') as task_type`;

const JOINS = `left join task on task.id = execution.task_id
    left join inbound_message on inbound_message.id = execution.message_id`;

/** Finds the rows that decide in which trace a run is. */
export function findRunOrigin(db: Database, executionId: string): Promise<RunOrigin | null> {
  return db.first<RunOrigin>(`select ${ORIGIN} from execution ${JOINS} where execution.id = ?`, [
    executionId,
  ]);
}

/** Lists the messages of these ids that have been routed, or could not be. */
export function listTracedMessages(db: Database, ids: readonly string[]): Promise<TracedMessage[]> {
  return db.read<TracedMessage>(
    `select id, ${CALLER("inbound_message.id")} as trace, session_key, platform, status, content, error,
      received_at, coalesce(processed_at, received_at) as processed_at
    from inbound_message
    where id in (select value from json_each(?))`,
    [JSON.stringify(ids)],
  );
}

/** Lists the runs of these ids that have ended. */
export function listTracedRuns(db: Database, ids: readonly string[]): Promise<TracedRun[]> {
  return db.read<TracedRun>(
    `select ${ORIGIN}, execution.worker_id, execution.worker_name, execution.task_id, execution.session_key,
      execution.engine, execution.status, execution.failure, execution.attempt, execution.instruction,
      execution.result, execution.error, execution.input_tokens, execution.output_tokens, execution.cost_usd,
      iif(task.type = 'immediate' and execution.attempt = 1, task.created_at, execution.created_at) as queued_at,
      coalesce(execution.started_at, execution.completed_at) as started_at, execution.completed_at
    from execution ${JOINS}
    where execution.id in (select value from json_each(?)) and execution.completed_at is not null`,
    [JSON.stringify(ids)],
  );
}

/** Lists the replies of these ids. */
export async function listTracedReplies(db: Database, ids: readonly string[]): Promise<TracedReply[]> {
  const rows = await db.read<Omit<TracedReply, "run"> & RunOrigin & { run_id: string | null }>(
    `select outbound_message.id, outbound_message.session_key, outbound_message.platform,
      outbound_message.status, outbound_message.content, outbound_message.error, outbound_message.created_at,
      coalesce(outbound_message.sent_at, outbound_message.created_at) as ended_at,
      execution.id as run_id, coalesce(execution.id, '') as execution_id,
      ${CALLER("execution.task_id")} as task_trace, inbound_message.id as message_id,
      ${CALLER("inbound_message.id")} as message_trace, coalesce(task.type, '') as task_type
    from outbound_message
    left join execution on execution.id = nullif(outbound_message.execution_id, '')
    left join task on task.id = execution.task_id
    left join inbound_message on inbound_message.id = outbound_message.message_id
    where outbound_message.id in (select value from json_each(?))`,
    [JSON.stringify(ids)],
  );
  return rows.map(({ run_id, execution_id, task_trace, task_type, ...reply }) => {
    const { message_id, message_trace } = reply;
    const run = { execution_id, task_trace, message_id, message_trace, task_type };
    return { ...reply, run: run_id === null ? null : run };
  });
}
