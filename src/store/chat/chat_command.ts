import type { Database, Statement } from "../db/database.ts";
import { EXECUTION_IS_OPEN, MESSAGE_IS_UNROUTED, TASK_IS_ACTIVE } from "../db/status_sql.ts";

/** What goes on in a conversation, as /status says it. */
interface Going {
  running: { worker: string; since: number }[];
  waiting: number;
  questions: number;
  scheduled: number;
}

// More runs at once are not named.
const RUNNING_SHOWN_MAX = 20;

/** Runs, tasks that wait, open questions and schedules of a conversation. */
export async function findGoing(db: Database, sessionKey: string): Promise<Going> {
  const [running, counts] = await Promise.all([
    db.read<{ worker: string; since: number }>(
      `select worker_name as worker, created_at as since
      from execution
      where session_key = ? and status ${EXECUTION_IS_OPEN}
      order by id
      limit ?`,
      [sessionKey, RUNNING_SHOWN_MAX],
    ),
    db.first<Omit<Going, "running">>(
      `select
        (select count(*) from task where session_key = ? and status ${TASK_IS_ACTIVE} and status = 'pending') as waiting,
        (select count(*) from task where session_key = ? and status ${TASK_IS_ACTIVE} and status = 'scheduled') as scheduled,
        (select count(*) from question where session_key = ? and status = 'open') as questions`,
      [sessionKey, sessionKey, sessionKey],
    ),
  ]);
  return { running, ...counts ?? { waiting: 0, scheduled: 0, questions: 0 } };
}

/** Messages of a conversation that came before this one and are not routed yet -> failed. */
export function dropEarlier(sessionKey: string, id: string, error: string, now: number): Statement {
  return {
    sql: `update inbound_message
      set status = 'failed', error = ?, processed_at = ?
      where session_key = ? and status ${MESSAGE_IS_UNROUTED} and id < ?`,
    args: [error, now, sessionKey, id],
  };
}
