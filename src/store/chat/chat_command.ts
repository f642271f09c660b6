import type { Database, Statement } from "../db/database.ts";
import { EXECUTION_IS_OPEN, MESSAGE_IS_UNROUTED, TASK_IS_ACTIVE } from "../db/status_sql.ts";

interface ConversationActivity {
  running: { worker: string; since: number }[];
  waiting: number;
  questions: number;
  scheduled: number;
}

const RUNNING_LISTED_MAX = 20;

/** Reads the running and pending tasks, open questions and schedules of a conversation. */
export async function readConversationActivity(
  db: Database,
  sessionKey: string,
): Promise<ConversationActivity> {
  const [running, counts] = await Promise.all([
    db.read<{ worker: string; since: number }>(
      `select worker_name as worker, created_at as since
      from execution
      where session_key = ? and status ${EXECUTION_IS_OPEN}
      order by id
      limit ?`,
      [sessionKey, RUNNING_LISTED_MAX],
    ),
    db.first<Omit<ConversationActivity, "running">>(
      `select
        (select count(*) from task where session_key = ? and status ${TASK_IS_ACTIVE} and status = 'pending') as waiting,
        (select count(*) from task where session_key = ? and status ${TASK_IS_ACTIVE} and status = 'scheduled') as scheduled,
        (select count(*) from question where session_key = ? and status = 'open') as questions`,
      [sessionKey, sessionKey, sessionKey],
    ),
  ]);
  return { running, ...counts ?? { waiting: 0, scheduled: 0, questions: 0 } };
}

/** Unrouted messages of a conversation before this one -> failed. */
export function failEarlierMessages(sessionKey: string, id: string, error: string, now: number): Statement {
  return {
    sql: `update inbound_message
      set status = 'failed', error = ?, processed_at = ?
      where session_key = ? and status ${MESSAGE_IS_UNROUTED} and id < ?`,
    args: [error, now, sessionKey, id],
  };
}
