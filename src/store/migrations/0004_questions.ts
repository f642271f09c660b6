/** What agents ask people, and how an answer finds its way back (contract 12). */
export const QUESTIONS: string[] = [
  `create table question (
    id text primary key,
    session_key text not null,
    message_id text not null,
    -- The task and the latest run that asked, and their worker; '' for a person who asks.
    task_id text not null default '',
    execution_id text not null default '',
    worker_id text not null default '',
    asked_by text not null,
    text text not null,
    options text not null default '[]' check (json_valid(options)),
    default_answer text not null default '',
    status text not null check (status in ('open', 'answered', 'expired', 'cancelled')),
    answer text not null default '',
    answered_by text not null default '',
    -- The message of the chat that answered it; '' for any other way.
    answered_in text not null default '',
    -- The task that brings the answer to the worker; null while there is none.
    answer_task_id text,
    -- 1: the run that asked has a session of its own, which is not that of its conversation.
    own_session integer not null default 0 check (own_session in (0, 1)),
    work_dir text not null default '',
    -- 1 while the run waits for the answer.
    waiting integer not null default 0 check (waiting in (0, 1)),
    created_at integer not null,
    expires_at integer not null,
    answered_at integer,
    seen_at integer,
    check (status <> 'answered' or answered_at is not null)
  ) strict`,
  `create index question_session on question (session_key, id)`,
  `create index question_worker on question (worker_id, id)`,
  `create index question_status on question (status, id)`,
  `create index question_ending on question (substr(id, -6))`,
  `create index question_of_session on question (session_key) where status = 'open'`,
  `create index question_of_task on question (task_id) where status = 'open'`,
  `create index question_due on question (expires_at) where status = 'open'`,
  `create index question_execution on question (execution_id) where execution_id <> ''`,
  `create index question_answer_task on question (answer_task_id) where answer_task_id is not null`,
  `create index question_waiting on question (worker_id) where waiting = 1`,
  `create index question_ended on question (created_at) where status <> 'open'`,

  // '' for every other message.
  `alter table outbound_message add column question_id text not null default ''`,
  `create index outbound_question on outbound_message (question_id) where question_id <> ''`,
  // The message of ours that a person replied to; '' for none.
  `alter table inbound_message add column reply_to text not null default ''`,
  // 1: said where nobody else is.
  `alter table inbound_message add column is_direct integer not null default 0 check (is_direct in (0, 1))`,
];
