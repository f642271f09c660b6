// Every transition of a question, with its event and the task of its answer (contract 12):
// open -> answered, expired or cancelled
import { WAKEUP } from "../../base/wakeups.ts";
import { pickRunKeys, type RunKeys } from "../../domain/call/run_identity.ts";
import { ANSWER_WORDS } from "../../domain/work/question.ts";
import { BY_DEFAULT } from "../../domain/call/vocabulary.ts";
import { guard, type Statement, type Value } from "../db/database.ts";
import { recordTransition } from "../events/journal.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";
import { rememberCall } from "./approval.ts";
import { insertImmediateTasks, type TaskValues } from "./task.ts";

type QuestionKeys = RunKeys & { id: string };

interface AnswerInput {
  answer: string;
  /** `user:<name>` or `token:<name>`, `default` for an expired question. */
  by: string;
  /** The chat message with the answer, or "". */
  messageId: string;
  /** The id for the task that takes the answer to the worker. */
  taskId: string;
}

/**
 * open -> answered, once, and before the expiry unless the answer is the default. When the run that asked has ended, the same batch
 * creates a task of the same worker. Otherwise the run receives the answer, or its end creates that task.
 */
export function answerQuestion(question: QuestionKeys, input: AnswerInput, now: number): Statement[] {
  const { id } = question;
  const { answer, by, messageId, taskId } = input;
  const byDefault = by === BY_DEFAULT;
  return [
    ...recordTransition(
      guard(
        `update question
        set status = 'answered', answer = ?, answered_by = ?, answered_in = ?, answered_at = ?, waiting = 0
        where id = ? and status = 'open' and (expires_at > ?) <> ?`,
        [answer, by, messageId, now, id, now, byDefault],
      ),
      now,
      {
        kind: "question.answered",
        ...pickRunKeys(question),
        actor: byDefault ? "system" : by,
        data: { question_id: id, by },
      },
    ),
    ...rememberCall(id, now),
    ...createAnswerTasks({ sql: "question.id = ?", args: [id] }, [taskId], now),
  ];
}

/** open -> expired, without a default. */
export function expireQuestion(question: QuestionKeys, now: number): Statement[] {
  return recordTransition(
    guard(
      "update question set status = 'expired', waiting = 0 where id = ? and status = 'open' and expires_at <= ?",
      [question.id, now],
    ),
    now,
    { kind: "question.expired", ...pickRunKeys(question), data: { question_id: question.id } },
  );
}

export function cancelQuestion(question: QuestionKeys, by: string, now: number): Statement[] {
  return recordTransition(
    guard("update question set status = 'cancelled', waiting = 0 where id = ? and status = 'open'", [
      question.id,
    ]),
    now,
    { kind: "question.cancelled", ...pickRunKeys(question), actor: by, data: { question_id: question.id } },
  );
}

/** Cancels the open question about a tool call. No change for a closed one. */
export function withdrawCall({ id }: QuestionKeys, by: string, now: number): Statement[] {
  return withdrawQuestions({ id }, by, now);
}

type Asker = { id: string } | { session_key: string } | { worker_id: string } | { execution_id: string };

/**
 * Cancels the asker's open questions, and drops answers that no run has received, for a clear, a deletion or a cancelled run
 * (contract 12). `kind` is a condition in SQL.
 */
export function withdrawQuestions(asker: Asker, by: string, now: number, kind = "true"): Statement[] {
  const [[column, value] = ["", ""]] = Object.entries(asker);
  const own = `${column} = ? and ${column} <> '' and ${kind}`;
  return [
    // The event comes first because it selects the open questions.
    {
      sql:
        `insert into journal (at, kind, session_key, worker_id, task_id, execution_id, message_id, actor, data)
        select ?, 'question.cancelled', session_key, worker_id, task_id, execution_id, message_id, ?,
          json_object('question_id', id)
        from question
        where ${own} and status = 'open'`,
      args: [now, by, value],
    },
    {
      sql: `update question set status = 'cancelled', waiting = 0 where ${own} and status = 'open'`,
      args: [value],
    },
    {
      sql: `update question set seen_at = ? where ${own} and status = 'answered' and seen_at is null`,
      args: [now, value],
    },
  ];
}

interface QuestionsEnd {
  executionId: string;
  by: "end" | "cancelled" | "lost";
  /** Ids for the tasks of the answers, as many as one run may ask. */
  taskIds: readonly string[];
}

/**
 * Ends the waits of a run and turns each answer that the run has not received into a task. Answers that a lost run received may be lost
 * with it, so they become tasks, too. A run that a person ended withdraws its questions.
 */
export function endQuestions({ executionId, by, taskIds }: QuestionsEnd, now: number): Statement[] {
  if (by === "cancelled") return withdrawQuestions({ execution_id: executionId }, "system", now);
  return [
    // A tool call does not outlive its run.
    ...withdrawQuestions({ execution_id: executionId }, "system", now, "tool <> ''"),
    {
      sql: "update question set waiting = 0 where execution_id = ? and execution_id <> '' and waiting = 1",
      args: [executionId],
    },
    ...(by === "lost"
      ? [{
        sql: `update question
          set seen_at = null
          where execution_id = ? and execution_id <> '' and status = 'answered' and answer_task_id is null and tool = ''`,
        args: [executionId],
      }]
      : []),
    ...createAnswerTasks(
      { sql: "question.execution_id = ? and question.execution_id <> ''", args: [executionId] },
      taskIds,
      now,
    ),
  ];
}

/**
 * Marks the answer as received by the run that asked. No change when the run has ended or a task has the answer. A tool call whose run
 * is being ended does not get its answer.
 */
export function markAnswerSeen(id: string, executionId: string, now: number): Statement {
  return {
    sql: `update question
      set seen_at = ?
      where id = ? and status = 'answered' and seen_at is null and execution_id = ? and exists (
        select 1
        from execution
        where execution.id = question.execution_id and status ${EXECUTION_IS_OPEN} and (tool = '' or cancelled_by = ''))`,
    args: [now, id, executionId],
  };
}

/** Stores whether the run waits for the answer. A waiting run frees its slot. */
export function setQuestionWaiting(id: string, executionId: string, waiting: boolean): Statement {
  return {
    sql:
      "update question set waiting = ? where id = ? and execution_id = ? and status = 'open' and waiting <> ?",
    args: [waiting, id, executionId, waiting],
    wakeup: WAKEUP.dispatcher,
  };
}

// Turns unreceived answers of ended runs into tasks: first stores the id of each task, then creates the tasks from the questions.
function createAnswerTasks(
  condition: { sql: string; args: Value[] },
  taskIds: readonly string[],
  now: number,
): Statement[] {
  const ids = JSON.stringify(taskIds);
  return [
    {
      sql: `update question
        set answer_task_id = fresh.value, seen_at = ?
        from (
          select id, row_number() over (order by id) - 1 as position
          from question
          where ${condition.sql} and status = 'answered' and seen_at is null and task_id <> '' and tool = '' and not exists (
            select 1 from execution where execution.id = question.execution_id and execution.status ${EXECUTION_IS_OPEN})
        ) as due
        join json_each(?) as fresh on fresh.key = due.position
        where question.id = due.id`,
      args: [now, ...condition.args, ids],
    },
    insertAnswerTasks(ids, now),
    {
      sql: `insert into journal (at, kind, session_key, worker_id, task_id, message_id, actor, data)
        select ?, 'task.created', session_key, worker_id, id, message_id, created_by,
          json_object('type', type, 'status', status)
        from task
        where id in (select value from json_each(?))`,
      args: [now, ids],
    },
  ];
}

function insertAnswerTasks(ids: string, now: number): Statement {
  const sql = `from question
      join worker on worker.id = question.worker_id
      left join task as asked on asked.id = question.task_id
      where question.answer_task_id in (select value from json_each(?))`;
  return insertImmediateTasks(QUESTION_VALUES, { sql, args: [ids] }, now);
}

const { asked, answered, byDefault } = ANSWER_WORDS;

/** Task columns from the question. A default answer adds a step to a chain of agents because no person took part (contract 2.9). */
const QUESTION_VALUES: TaskValues = {
  id: { sql: "question.answer_task_id", args: [] },
  message_id: { sql: "iif(question.answered_in = '', question.message_id, question.answered_in)", args: [] },
  worker_id: { sql: "question.worker_id", args: [] },
  session_key: { sql: "question.session_key", args: [] },
  instruction: {
    sql: "? || question.text || ? || question.answer || iif(question.answered_by = ?, ?, '')",
    args: [asked, answered, BY_DEFAULT, byDefault],
  },
  created_by: {
    sql: "iif(question.answered_by = ?, 'worker:' || question.worker_id, question.answered_by)",
    args: [BY_DEFAULT],
  },
  // The follow-up task has the checks and the destination of the task that asked.
  verify: { sql: "coalesce(asked.verify, 'null')", args: [] },
  deliver_to: { sql: "coalesce(asked.deliver_to, '')", args: [] },
  parent_task_id: { sql: "question.task_id", args: [] },
  depth: {
    sql: "coalesce(asked.depth, 0) + (question.answered_by = ?)",
    args: [BY_DEFAULT],
  },
};
