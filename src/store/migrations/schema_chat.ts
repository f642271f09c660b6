/** Messages in and out, conversations, the bee, platforms and questions. */
export const CHAT_SCHEMA: string[] = [
  `create table chat_session (
    id text primary key,
    name text not null,
    worker_id text references worker (id) on delete set null,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index chat_session_worker on chat_session (worker_id)`,
  `create index chat_session_ending on chat_session (substr(id, -6))`,

  // A row for each conversation, so that conversations are listed by their latest message without reading messages.
  `create table conversation (
    session_key text primary key,
    platform text not null,
    -- The latest message, or the local session while it has none.
    id text not null,
    role text not null check (role in ('', 'user', 'bee')),
    updated_at integer not null
  ) strict, without rowid`,
  `create index conversation_latest on conversation (id)`,
  `create index conversation_platform on conversation (platform, id)`,

  `create table upload (
    path text primary key,
    session_id text not null,
    name text not null,
    original_name text not null,
    size integer not null,
    mime text not null,
    created_at integer not null
  ) strict`,
  `create index upload_session on upload (session_id)`,
  `create index upload_age on upload (created_at)`,

  `create table inbound_message (
    id text primary key,
    session_key text not null,
    platform text not null,
    platform_message_id text not null,
    sender text not null default '',
    sender_name text not null default '',
    -- Our message that a person replied to; '' for none.
    reply_to text not null default '',
    -- 1: sent in a direct conversation with the bee.
    is_direct integer not null default 0 check (is_direct in (0, 1)),
    -- 1: sent by a program, so never a mention, a command or an answer.
    is_data integer not null default 0 check (is_data in (0, 1)),
    -- 1: not merged with other messages.
    alone integer not null default 0 check (alone in (0, 1)),
    -- How many tasks of agents led to a message that a run sent; 0 for people and programs.
    depth integer not null default 0,
    content text not null,
    media text not null default 'null' check (json_valid(media)),
    -- A file that has yet to be fetched, as the platform describes it; '' for none.
    attachment text not null default '',
    status text not null check (status in ('received', 'feeding', 'bee_processed', 'merged', 'failed')),
    merged_into text,
    -- The result of routing; '' before.
    routed text not null default ''
      check (routed in ('', 'task', 'reply', 'nobody')),
    error text not null default '',
    attempt integer not null default 0,
    -- The bee does not read the message before this time, which is its back-off.
    due_at integer not null,
    received_at integer not null,
    processed_at integer,
    unique (platform, platform_message_id)
  ) strict`,
  `create index inbound_platform_message on inbound_message (platform_message_id, id)`,
  `create index inbound_session on inbound_message (session_key, id)`,
  `create index inbound_status on inbound_message (status, id)`,
  `create index inbound_platform on inbound_message (platform, id)`,
  `create index inbound_sender on inbound_message (sender, id)`,
  `create index inbound_received on inbound_message (received_at)`,
  `create index inbound_part on inbound_message (merged_into) where merged_into is not null`,
  `create index inbound_open on inbound_message (status, session_key, id) where status in ('received', 'feeding')`,
  `create index inbound_media on inbound_message (media ->> '$.path') where media <> 'null'`,
  `create index inbound_attachment on inbound_message (id) where attachment <> ''`,
  `create index inbound_message_ending on inbound_message (substr(id, -6))`,

  `create table bee_run (
    id text primary key,
    message_id text not null,
    session_key text not null,
    engine text not null,
    status text not null check (status in ('running', 'completed', 'failed')),
    -- Why the message was routed as it was: mention, session worker, best match, only worker, plan ...
    reason text not null default '',
    reply text not null default '',
    error text not null default '',
    failure text not null default '',
    attempt integer not null,
    task_count integer not null default 0,
    run_id text not null default '',
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    created_at integer not null,
    completed_at integer
  ) strict`,
  `create index bee_run_message on bee_run (message_id)`,
  `create index bee_run_session on bee_run (session_key, id)`,
  `create index bee_run_open on bee_run (status) where status = 'running'`,
  `create index bee_run_ended on bee_run (completed_at) where completed_at is not null`,

  `create table outbound_message (
    id text primary key,
    session_key text not null,
    platform text not null,
    message_id text not null,
    source_type text not null check (source_type in ('bee', 'worker', 'system')),
    source_id text not null default '',
    execution_id text not null default '',
    -- '' for a message that asks nothing.
    question_id text not null default '',
    content text not null,
    media text not null default 'null' check (json_valid(media)),
    status text not null check (status in ('sent', 'failed')),
    attempt integer not null default 0,
    error text not null default '',
    -- While failed: the next try; null when there is none.
    due_at integer,
    created_at integer not null,
    sent_at integer,
    -- The last request to send it again, from which the platform may be away as long as before.
    resent_at integer
  ) strict`,
  `create index outbound_session on outbound_message (session_key, id)`,
  `create index outbound_status on outbound_message (status, id)`,
  `create index outbound_platform on outbound_message (platform, id)`,
  `create index outbound_source on outbound_message (source_id, id)`,
  `create index outbound_source_type on outbound_message (source_type, id)`,
  `create index outbound_sent on outbound_message (sent_at)`,
  `create index outbound_message_id on outbound_message (message_id)`,
  `create index outbound_execution on outbound_message (execution_id) where execution_id <> ''`,
  `create index outbound_question on outbound_message (question_id) where question_id <> ''`,
  // The replies of one platform that wait, by conversation, and those that are due in order.
  `create index outbound_waiting on outbound_message (platform, session_key, id)
    where status = 'failed' and due_at is not null`,
  `create index outbound_ready on outbound_message (platform, due_at, id)
    where status = 'failed' and due_at is not null`,
  `create index outbound_given_up on outbound_message (created_at) where status = 'failed' and due_at is null`,
  // Counts sent messages without their rows: a row has the status after the text, so counting would read every page.
  `create index outbound_history on outbound_message (session_key, id) where status = 'sent'`,
  `create index outbound_media on outbound_message (media ->> '$.path') where media <> 'null'`,
  `create index outbound_ending on outbound_message (substr(id, -6))`,

  // A reply as it is sent, cut for its platform. A part with sending_at and without sent_at may have arrived.
  `create table outbound_part (
    outbound_id text not null references outbound_message (id) on delete cascade,
    number integer not null,
    body text not null check (json_valid(body)),
    sending_at integer,
    -- How many times the part was sent without an answer.
    unanswered integer not null default 0,
    sent_at integer,
    -- The platform's id of the message.
    sent_as text not null default '',
    primary key (outbound_id, number)
  ) strict, without rowid`,
  `create index outbound_part_sending on outbound_part (sending_at) where sending_at is not null`,
  `create index outbound_part_sent_as on outbound_part (sent_as) where sent_as <> ''`,

  // The message that shows the progress of a run.
  `create table platform_progress (
    session_key text primary key,
    platform text not null,
    -- The platform's id of the message; '' when unknown.
    sent_as text not null,
    text text not null,
    edits integer not null,
    edited_at integer not null
  ) strict, without rowid`,

  `create table platform_sender (
    platform text not null,
    id text not null,
    name text not null,
    paired_by text not null,
    created_at integer not null,
    primary key (platform, id)
  ) strict, without rowid`,

  // Senders with a pairing code.
  `create table platform_pairing (
    platform text not null,
    sender text not null,
    name text not null,
    code_hash text not null unique,
    created_at integer not null,
    expires_at integer not null,
    primary key (platform, sender)
  ) strict, without rowid`,
  `create index platform_pairing_age on platform_pairing (platform, created_at)`,

  `create table question (
    id text primary key,
    session_key text not null,
    message_id text not null,
    -- The task and the latest run that asked, and their worker; '' for a question of a person.
    task_id text not null default '',
    execution_id text not null default '',
    worker_id text not null default '',
    asked_by text not null,
    text text not null,
    -- The tool call that needs approval; '' for any other question.
    tool text not null default '',
    arguments text not null default '',
    path text not null default '',
    -- Under this key the conversation remembers the call.
    call_key text not null default '',
    options text not null default '[]' check (json_valid(options)),
    default_answer text not null default '',
    status text not null check (status in ('open', 'answered', 'expired', 'cancelled')),
    answer text not null default '',
    answered_by text not null default '',
    -- The chat message with the answer; '' for an answer from elsewhere.
    answered_in text not null default '',
    -- The task that brings the answer to the worker.
    answer_task_id text,
    -- 1: the run that asked has its own engine session, not that of its conversation.
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

  // Tool calls that a person allowed for the rest of a conversation. The id is that of the question.
  `create table approval (
    id text primary key,
    session_key text not null,
    worker_id text not null,
    engine text not null,
    tool text not null,
    arguments text not null,
    path text not null,
    call_key text not null,
    allowed_by text not null,
    created_at integer not null
  ) strict`,
  `create unique index approval_call on approval (session_key, worker_id, engine, call_key)`,
  `create index approval_session on approval (session_key, id)`,
  `create index approval_worker on approval (worker_id)`,
];
