/**
 * The whole schema (contract 3, contract 4). Times are Unix ms, ids UUIDv7, absent strings ''.
 * CHECK constraints repeat the status lists, so an unknown status cannot be stored.
 */
export const START: string[] = [
  // A lost guard violates this check, which rolls its batch back (architecture, sentence 3).
  `create table guard (
    held integer not null constraint guard_lost check (held = 1)
  ) strict`,

  `create table setting (
    name text primary key,
    value text not null
  ) strict`,

  `create table credential (
    username text primary key,
    password_hash text not null,
    -- Where the hash came from: generated, config, environment or changed by the operator.
    source text not null check (source in ('generated', 'config', 'environment', 'operator')),
    -- Goes up with each change of password and makes older tokens invalid.
    version integer not null check (version >= 1),
    updated_at integer not null
  ) strict`,

  `create table refresh_token (
    id text primary key,
    token_hash text not null unique,
    username text not null,
    version integer not null,
    created_at integer not null,
    expires_at integer not null
  ) strict`,
  `create index refresh_token_expiry on refresh_token (expires_at)`,

  `create table login_failure (
    who text primary key,
    minute integer not null,
    failures integer not null
  ) strict`,

  `create table idempotency (
    key text primary key,
    fingerprint text not null,
    status integer not null,
    response text not null,
    created_at integer not null
  ) strict`,
  `create index idempotency_age on idempotency (created_at)`,

  `create table department (
    id text primary key,
    name text not null,
    name_key text not null unique,
    parent_id text references department (id),
    sort_order integer not null default 0,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index department_parent on department (parent_id, sort_order, name_key)`,

  `create table worker (
    id text primary key,
    name text not null,
    name_key text not null,
    description text not null default '',
    memory text not null default '',
    constraints text not null default '',
    engine text not null default '',
    engine_args text not null default '{}' check (json_valid(engine_args)),
    scopes text not null default '[]' check (json_valid(scopes)),
    work_dir text not null,
    paused integer not null default 0 check (paused in (0, 1)),
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index worker_name on worker (name_key)`,

  `create table worker_department (
    worker_id text not null references worker (id) on delete cascade,
    department_id text not null references department (id) on delete cascade,
    primary key (worker_id, department_id)
  ) strict, without rowid`,
  `create index worker_department_department on worker_department (department_id, worker_id)`,

  `create table chat_session (
    id text primary key,
    name text not null,
    worker_id text references worker (id) on delete set null,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index chat_session_worker on chat_session (worker_id)`,

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

  `create table inbound_message (
    id text primary key,
    session_key text not null,
    platform text not null,
    platform_message_id text not null,
    sender text not null default '',
    content text not null,
    media text not null default 'null' check (json_valid(media)),
    status text not null check (status in ('received', 'feeding', 'bee_processed', 'merged', 'failed')),
    merged_into text,
    error text not null default '',
    attempt integer not null default 0,
    -- Not before this time: the bee's back-off.
    due_at integer not null,
    received_at integer not null,
    processed_at integer,
    unique (platform, platform_message_id)
  ) strict`,
  `create index inbound_platform_message on inbound_message (platform_message_id, id)`,
  `create index inbound_session on inbound_message (session_key, id)`,
  `create index inbound_status on inbound_message (status, id)`,
  `create index inbound_platform on inbound_message (platform, id)`,
  `create index inbound_received on inbound_message (received_at)`,
  `create index inbound_part on inbound_message (merged_into) where merged_into is not null`,
  `create index inbound_open on inbound_message (status, session_key, id) where status in ('received', 'feeding')`,

  `create table bee_run (
    id text primary key,
    message_id text not null,
    session_key text not null,
    engine text not null,
    status text not null check (status in ('running', 'completed', 'failed')),
    -- Why it was routed as it was: mention, session worker, best match, only worker, plan ...
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
  `create index bee_run_open on bee_run (status) where status = 'running'`,

  `create table task (
    id text primary key,
    message_id text not null,
    worker_id text not null,
    session_key text not null,
    instruction text not null,
    type text not null check (type in ('immediate', 'countdown', 'scheduled')),
    scheduled_at integer,
    cron text not null default '',
    time_zone text not null default '',
    status text not null
      check (status in ('scheduled', 'pending', 'running', 'completed', 'failed', 'cancelled')),
    reason text not null default '',
    -- The next time of a countdown or a schedule; the scheduler's index.
    next_run_at integer,
    -- While pending: place in the lane's queue, and not before this time.
    due_at integer,
    run_count integer not null default 0,
    -- Runs that count against limits.max_attempts; a graceful stop gives its attempt back.
    attempt integer not null default 0,
    execution_id text,
    created_by text not null,
    parent_task_id text,
    depth integer not null default 0,
    created_at integer not null,
    updated_at integer not null,
    check (status <> 'pending' or due_at is not null),
    check (status <> 'scheduled' or next_run_at is not null)
  ) strict`,
  `create index task_session on task (session_key, id)`,
  `create index task_message on task (message_id, id)`,
  `create index task_worker on task (worker_id, id)`,
  `create index task_next on task (next_run_at) where next_run_at is not null`,
  `create index task_lane on task (worker_id, due_at, id) where status = 'pending'`,
  `create index task_due on task (due_at) where status = 'pending'`,
  `create index task_running on task (id) where status = 'running'`,
  `create index task_active on task (session_key, worker_id) where status in ('pending', 'running', 'scheduled')`,
  `create index task_of_worker on task (worker_id, status) where status in ('pending', 'running', 'scheduled')`,

  // One firing per task and minute, however often the tick is repeated (reliability CRN-1).
  `create table occurrence (
    task_id text not null,
    minute integer not null,
    created_at integer not null,
    primary key (task_id, minute)
  ) strict, without rowid`,
  `create index occurrence_age on occurrence (created_at)`,

  `create table execution (
    id text primary key,
    worker_id text not null,
    worker_name text not null,
    task_id text not null,
    message_id text not null,
    session_key text not null,
    session_id text not null default '',
    engine text not null,
    instruction text not null,
    status text not null check (status in ('pending', 'running', 'completed', 'failed')),
    result text not null default '',
    error text not null default '',
    failure text not null default ''
      check (failure in ('', 'exit_code', 'engine_error', 'timeout', 'idle_timeout', 'cancelled',
                         'spawn_failed', 'server_lost', 'rate_limited')),
    exit_code integer,
    attempt integer not null,
    -- SVC_RUN_ID: marks every process of this run.
    run_id text not null,
    -- Who asked to end it; kept before the processes are ended, so that a crash in between is no excuse.
    cancelled_by text not null default '',
    -- 0 once its session was cleared: then its end must not bring the context back.
    keeps_context integer not null default 1 check (keeps_context in (0, 1)),
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    created_at integer not null,
    started_at integer,
    completed_at integer
  ) strict`,
  `create index execution_worker on execution (worker_id, id)`,
  `create index execution_session on execution (session_id, session_key, id)`,
  `create index execution_session_key on execution (session_key, id)`,
  `create index execution_status on execution (status, id)`,
  `create index execution_task on execution (task_id, id)`,
  `create index execution_message on execution (message_id, id)`,
  `create index execution_started on execution (started_at)`,
  `create index execution_completed on execution (completed_at)`,
  `create index execution_open on execution (worker_id) where status in ('pending', 'running')`,

  `create table outbound_message (
    id text primary key,
    session_key text not null,
    platform text not null,
    message_id text not null,
    content text not null,
    media text not null default 'null' check (json_valid(media)),
    status text not null check (status in ('sent', 'failed')),
    source_type text not null check (source_type in ('bee', 'worker', 'system')),
    source_id text not null default '',
    execution_id text not null default '',
    attempt integer not null default 0,
    error text not null default '',
    -- While failed: when delivery is tried again; null when it is given up.
    due_at integer,
    created_at integer not null,
    sent_at integer
  ) strict`,
  `create index outbound_session on outbound_message (session_key, id)`,
  `create index outbound_status on outbound_message (status, id)`,
  `create index outbound_platform on outbound_message (platform, id)`,
  `create index outbound_source on outbound_message (source_id, id)`,
  `create index outbound_source_type on outbound_message (source_type, id)`,
  `create index outbound_sent on outbound_message (sent_at)`,
  `create index outbound_message_id on outbound_message (message_id)`,
  `create index outbound_execution on outbound_message (execution_id) where execution_id <> ''`,
  `create index outbound_due on outbound_message (due_at) where status = 'failed' and due_at is not null`,

  `create table session_context (
    session_key text not null,
    worker_id text not null references worker (id) on delete cascade,
    engine text not null,
    session_id text not null,
    work_dir text not null,
    -- What the engine's session has used so far, where it reports totals only.
    usage text not null default '{}' check (json_valid(usage)),
    updated_at integer not null,
    primary key (session_key, worker_id)
  ) strict, without rowid`,
  `create index session_context_worker on session_context (worker_id)`,

  // The rate limit of an engine's provider; the row stays when it is over, until a run without a limit.
  `create table rate_limit (
    engine text primary key,
    until integer not null,
    strikes integer not null check (strikes >= 1)
  ) strict, without rowid`,

  `create table memory (
    scope text not null,
    key text not null,
    value text not null,
    updated_at integer not null,
    primary key (scope, key)
  ) strict, without rowid`,

  `create table journal (
    seq integer primary key autoincrement,
    at integer not null,
    kind text not null,
    session_key text not null default '',
    worker_id text not null default '',
    task_id text not null default '',
    execution_id text not null default '',
    message_id text not null default '',
    actor text not null default '',
    data text not null default '{}' check (json_valid(data))
  ) strict`,
  `create index journal_session on journal (session_key, seq) where session_key <> ''`,
  `create index journal_worker on journal (worker_id, seq) where worker_id <> ''`,
  `create index journal_task on journal (task_id, seq) where task_id <> ''`,
  `create index journal_message on journal (message_id, seq) where message_id <> ''`,
  `create index journal_kind on journal (kind, seq)`,
  `create index journal_at on journal (at)`,
];
