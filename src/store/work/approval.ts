// Tool calls that a person allowed for the rest of a conversation (contract 23)
import { ALLOW_HERE } from "../../domain/call/vocabulary.ts";
import type { Listing, Page } from "../../domain/call/page.ts";
import { type Approval, approvalSchema, REMEMBERED_CALLS_MAX } from "../../domain/work/approval.ts";
import type { Database, Statement } from "../db/database.ts";
import { list } from "../db/list.ts";
import { buildJsonSql } from "../db/json_projection.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";

const APPROVALS = {
  table: "approval",
  json: buildJsonSql("approval", approvalSchema, {
    worker_name: "coalesce((select name from worker where worker.id = approval.worker_id), '')",
  }),
  texts: ["arguments"],
};

/** Lists the calls that a conversation remembers, the latest first. */
export function listApprovals(db: Database, sessionKey: string, page: Page): Promise<Listing<Approval>> {
  const where = { conditions: ["approval.session_key = ?"], args: [sessionKey] };
  return list(db, { ...APPROVALS, where }, page);
}

/**
 * Remembers the call of a question that was just answered with "Allow in this conversation". No change for any other answer, and after
 * the conversation was cleared.
 */
export function rememberCall(questionId: string, now: number): Statement[] {
  return [
    {
      sql: `insert or ignore into approval
          (id, session_key, worker_id, engine, tool, arguments, path, call_key, allowed_by, created_at)
        select question.id, question.session_key, question.worker_id, engine, tool, arguments, path, call_key, answered_by, ?
        from question
        join execution on execution.id = question.execution_id
        where question.id = ? and tool <> '' and question.status = 'answered' and answer = ? and keeps_context = 1
          and execution.status ${EXECUTION_IS_OPEN}`,
      args: [now, questionId, ALLOW_HERE],
    },
    {
      sql: `delete from approval
        where id in (
          select id
          from approval
          where session_key = (select session_key from approval where id = ?)
          order by id desc
          limit -1 offset ${REMEMBERED_CALLS_MAX})`,
      args: [questionId],
    },
  ];
}

/** The engine of an open run, and whether its conversation remembers the call. Null for a run that has ended or is being ended. */
export function findCallGrant(
  db: Database,
  executionId: string,
  callKey: string,
): Promise<{ engine: string; is_remembered: number } | null> {
  return db.first(
    `select engine, keeps_context = 1 and exists (
        select 1
        from approval
        where approval.session_key = execution.session_key and approval.worker_id = execution.worker_id
          and approval.engine = execution.engine and call_key = ?) as is_remembered
    from execution
    where id = ? and status ${EXECUTION_IS_OPEN} and cancelled_by = ''`,
    [callKey, executionId],
  );
}

/** Forgets the calls of a conversation, of one worker or of all. */
export function deleteApprovals(sessionKey: string, workerId = ""): Statement {
  return {
    sql: "delete from approval where session_key = ? and (? = '' or worker_id = ?)",
    args: [sessionKey, workerId, workerId],
  };
}

/** Forgets the calls of a worker in every conversation. */
export function deleteWorkerApprovals(workerId: string): Statement {
  return { sql: "delete from approval where worker_id = ?", args: [workerId] };
}
