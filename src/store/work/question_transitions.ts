// Every move of a question, with its event and the task that its answer becomes (contract 12).
// open -> answered, expired or cancelled
import { WAKEUP } from "../../base/wakeups.ts";
import { ANSWER_WORDS } from "../../domain/work/question.ts";
import { newTask } from "../../domain/work/task.ts";
import { planTask } from "../../domain/work/task_plan.ts";
import { BY_DEFAULT } from "../../domain/call/vocabulary.ts";
import { guarded, type Statement, type Value } from "../db/database.ts";
import { moved } from "../events/journal.ts";
import { EXECUTION_IS_OPEN } from "../db/status_sql.ts";
import { TASK_COLUMNS, valuesOf } from "./task.ts";

/** The keys of a question, for its events. */
interface QuestionKeys {
  id: string;
  session_key: string;
  worker_id: string;
  task_id: string;
  execution_id: string;
  message_id: string;
}

/** An answer, and where it came from. */
interface GivenAnswer {
  answer: string;
  /** `user:<name>` or `token:<name>`; `default` when nobody answered. */
  by: string;
  /** The message of the chat that it is, or "". */
  messageId: string;
  /** For the task that brings it to the worker. */
  taskId: string;
}

function keysOf({ session_key, worker_id, task_id, execution_id, message_id }: QuestionKeys) {
  return { session_key, worker_id, task_id, execution_id, message_id };
}

/**
 * open -> answered, once, and before its time is over unless it is the default. When the run that asked has ended, the answer becomes a
 * task of the same worker in the same batch; else the run sees it, or its end makes that task.
 */
export function answerQuestion(question: QuestionKeys, given: GivenAnswer, now: number): Statement[] {
  const { id } = question;
  const { answer, by, messageId, taskId } = given;
  const byDefault = by === BY_DEFAULT;
  return [
    ...moved(
      guarded(
        `update question
        set status = 'answered', answer = ?, answered_by = ?, answered_in = ?, answered_at = ?, waiting = 0
        where id = ? and status = 'open' and (expires_at > ?) <> ?`,
        [answer, by, messageId, now, id, now, byDefault],
      ),
      now,
      {
        kind: "question.answered",
        ...keysOf(question),
        actor: byDefault ? "system" : by,
        data: { question_id: id, by },
      },
    ),
    ...bringAnswers({ sql: "question.id = ?", args: [id] }, [taskId], now),
  ];
}

/** open -> expired: its time is over, and there is no default. */
export function expireQuestion(question: QuestionKeys, now: number): Statement[] {
  return moved(
    guarded(
      "update question set status = 'expired', waiting = 0 where id = ? and status = 'open' and expires_at <= ?",
      [question.id, now],
    ),
    now,
    { kind: "question.expired", ...keysOf(question), data: { question_id: question.id } },
  );
}

/** open -> cancelled, by a person. */
export function cancelQuestion(question: QuestionKeys, by: string, now: number): Statement[] {
  return moved(
    guarded("update question set status = 'cancelled', waiting = 0 where id = ? and status = 'open'", [
      question.id,
    ]),
    now,
    { kind: "question.cancelled", ...keysOf(question), actor: by, data: { question_id: question.id } },
  );
}

/** Whose questions end with it. */
type Asker = { session_key: string } | { worker_id: string } | { execution_id: string };

/**
 * Every open question of a conversation, a worker or a run -> cancelled, and answers that no run has seen are not brought any more: a
 * clear, a deletion, a cancelled run (contract 12).
 */
export function withdrawQuestions(asker: Asker, by: string, now: number): Statement[] {
  const [[column, value] = ["", ""]] = Object.entries(asker);
  const own = `${column} = ? and ${column} <> ''`;
  return [
    // Before the move: it says which ones are open.
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

/** How the run of an execution ended, as its questions see it. */
interface QuestionsEnd {
  executionId: string;
  by: "end" | "cancelled" | "lost";
  /** Ids for the tasks of its answers: as many as one run may ask. */
  taskIds: readonly string[];
}

/**
 * What the end of a run means for its questions: nobody waits any more, and each answer that it has not seen becomes a task. What a run
 * saw that was lost with the service may be lost with it, so it is brought, too. A run that a person ended withdraws its questions.
 */
export function endQuestions({ executionId, by, taskIds }: QuestionsEnd, now: number): Statement[] {
  if (by === "cancelled") return withdrawQuestions({ execution_id: executionId }, "system", now);
  return [
    {
      sql: "update question set waiting = 0 where execution_id = ? and execution_id <> '' and waiting = 1",
      args: [executionId],
    },
    ...(by === "lost"
      ? [{
        sql: `update question
          set seen_at = null
          where execution_id = ? and execution_id <> '' and status = 'answered' and answer_task_id is null`,
        args: [executionId],
      }]
      : []),
    ...bringAnswers(
      { sql: "question.execution_id = ? and question.execution_id <> ''", args: [executionId] },
      taskIds,
      now,
    ),
  ];
}

/** The run that asked has the answer. Changes nothing when it has ended, or when a task brings it. */
export function seeAnswer(id: string, executionId: string, now: number): Statement {
  return {
    sql: `update question
      set seen_at = ?
      where id = ? and status = 'answered' and seen_at is null and execution_id = ? and exists (
        select 1 from execution where execution.id = question.execution_id and status ${EXECUTION_IS_OPEN})`,
    args: [now, id, executionId],
  };
}

/** The run that asked waits for the answer, or does so no longer. Either way a slot is taken or free. */
export function setWaiting(id: string, executionId: string, waiting: boolean): Statement {
  return {
    sql:
      "update question set waiting = ? where id = ? and execution_id = ? and status = 'open' and waiting <> ?",
    args: [waiting, id, executionId, waiting],
    wakeup: WAKEUP.dispatcher,
  };
}

// Answers that nobody has seen and whose run has ended become tasks: first each gets its task's id, then the tasks are made of them.
function bringAnswers(
  which: { sql: string; args: Value[] },
  taskIds: readonly string[],
  now: number,
): Statement[] {
  const ids = JSON.stringify(taskIds);
  return [
    {
      sql: `update question
        set answer_task_id = fresh.value, seen_at = ?
        from (
          select id, row_number() over (order by id) - 1 as place
          from question
          where ${which.sql} and status = 'answered' and seen_at is null and task_id <> '' and not exists (
            select 1 from execution where execution.id = question.execution_id and execution.status ${EXECUTION_IS_OPEN})
        ) as due
        join json_each(?) as fresh on fresh.key = due.place
        where question.id = due.id`,
      args: [now, ...which.args, ids],
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
  const { due_at, ...plan } = planTask({ type: "immediate" }, now, "");
  const seed = {
    id: "",
    message_id: "",
    worker_id: "",
    session_key: "",
    instruction: "",
    type: "immediate" as const,
    created_by: "",
  };
  const made = { ...newTask(seed, plan, now), due_at, parent_task_id: null, depth: 0 };
  const values = valuesOf(made);
  const columns = TASK_COLUMNS.map((name, index) =>
    OF_QUESTION[name] ?? { sql: "?", args: values.slice(index, index + 1) }
  );
  return {
    sql: `insert into task (${TASK_COLUMNS.join(", ")})
      select ${columns.map(({ sql }) => sql).join(", ")}
      from question
      join worker on worker.id = question.worker_id
      left join task as asked on asked.id = question.task_id
      where question.answer_task_id in (select value from json_each(?))`,
    args: [...columns.flatMap(({ args }) => args), ids],
    wakeup: WAKEUP.dispatcher,
  };
}

const { asked, answered, byDefault } = ANSWER_WORDS;

/** What the task has from the question. A default counts as a further step of a chain of agents, since no person took part (contract 2.9). */
const OF_QUESTION: Partial<Record<string, { sql: string; args: Value[] }>> = {
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
  // The work is checked as it would have been without the question, and its result goes where it would have gone.
  verify: { sql: "coalesce(asked.verify, 'null')", args: [] },
  deliver_to: { sql: "coalesce(asked.deliver_to, '')", args: [] },
  parent_task_id: { sql: "question.task_id", args: [] },
  depth: {
    sql: "coalesce(asked.depth, 0) + (question.answered_by = ?)",
    args: [BY_DEFAULT],
  },
};
