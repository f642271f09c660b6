/** Guards, settings, the journal, statistics, webhooks and notices. */
export const SYSTEM_SCHEMA: string[] = [
  // A lost guard violates this check, which rolls its batch back.
  `create table guard (
    held integer not null constraint guard_lost check (held = 1)
  ) strict`,

  `create table setting (
    name text primary key,
    value text not null
  ) strict`,

  `create table idempotency (
    key text primary key,
    fingerprint text not null,
    status integer not null,
    response text not null,
    created_at integer not null
  ) strict`,
  `create index idempotency_age on idempotency (created_at)`,

  // Servers that wait to take over the database. The clock of the database server sets the times.
  `create table standby (
    id text primary key,
    host text not null,
    pid integer not null,
    seen_at integer not null
  ) strict`,

  `create table journal (
    seq integer primary key autoincrement,
    at integer not null,
    kind text not null,
    actor text not null default '',
    session_key text not null default '',
    worker_id text not null default '',
    task_id text not null default '',
    execution_id text not null default '',
    message_id text not null default '',
    data text not null default '{}' check (json_valid(data)),
    -- The caller's network address and program; '' for changes by the service.
    address text not null default '',
    user_agent text not null default ''
  ) strict`,
  `create index journal_session on journal (session_key, seq) where session_key <> ''`,
  `create index journal_worker on journal (worker_id, seq) where worker_id <> ''`,
  `create index journal_task on journal (task_id, seq) where task_id <> ''`,
  `create index journal_message on journal (message_id, seq) where message_id <> ''`,
  `create index journal_kind on journal (kind, seq)`,
  `create index journal_at on journal (at)`,
  `create index journal_audit on journal (seq) where address <> ''`,
  `create index journal_actor on journal (actor, seq)`,

  // Rows of large tables by kind, so that no list counts them. Triggers update the numbers in the batch that changes the rows.
  `create table counter (
    -- worker: all, paused. message: inbound, outbound. task, execution: rows by status.
    -- ended: runs by outcome since the first start, which retention does not change.
    name text not null,
    key text not null,
    value integer not null default 0,
    primary key (name, key)
  ) strict, without rowid`,
  `insert into counter (name, key) values
    ('worker', 'all'), ('worker', 'paused'), ('message', 'inbound'), ('message', 'outbound'),
    ('task', 'scheduled'), ('task', 'pending'), ('task', 'running'),
    ('task', 'completed'), ('task', 'failed'), ('task', 'cancelled'),
    ('execution', 'pending'), ('execution', 'running'), ('execution', 'completed'), ('execution', 'failed')`,

  // Usage of ended runs by worker and quarter of an hour: the days of all time zones start at one.
  `create table usage (
    -- Quarters of an hour since 1970.
    bucket_start integer not null,
    worker_id text not null,
    executions integer not null,
    failed integer not null,
    ms integer not null default 0,
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    primary key (bucket_start, worker_id)
  ) strict, without rowid`,

  // The time that runs waited for their start, by quarter of an hour.
  `create table queue_wait_stats (
    bucket_start integer primary key,
    runs integer not null,
    ms integer not null,
    longest_ms integer not null
  ) strict`,

  // The service counts equal notices here and does not send them again.
  `create table notice (
    -- A session key, webhook:<name>, or a program with its arguments.
    place text not null,
    kind text not null,
    about text not null,
    at integer not null,
    -- Equal notices since then.
    suppressed_count integer not null default 0,
    primary key (place, kind, about)
  ) strict, without rowid`,
  `create index notice_at on notice (at)`,

  // Items of the inbox that a person dismissed, or snoozed until a time.
  `create table inbox_dismissal (
    kind text not null,
    id text not null,
    -- Shows the item again from this time on; null: never.
    until integer,
    created_at integer not null,
    primary key (kind, id)
  ) strict, without rowid`,
  `create index inbox_dismissal_age on inbox_dismissal (created_at)`,

  // The trace of a caller, for a message or a task that it created.
  `create table trace (
    id text primary key,
    traceparent text not null,
    created_at integer not null
  ) strict, without rowid`,
  `create index trace_age on trace (created_at)`,

  `create table webhook (
    id text primary key,
    name text not null,
    name_key text not null unique,
    url text not null,
    secret text not null,
    events text not null check (json_valid(events)),
    enabled integer not null default 1 check (enabled in (0, 1)),
    -- Why the service switched the webhook off; '' while it is on.
    disabled_reason text not null default '',
    origin text not null check (origin in ('config', 'api')),
    allow_private integer not null default 0 check (allow_private in (0, 1)),
    -- Events up to this one were delivered or did not match.
    cursor integer not null,
    attempt integer not null default 0,
    due_at integer not null,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index webhook_due on webhook (due_at) where enabled = 1`,
  `create index webhook_cursor on webhook (cursor) where enabled = 1`,

  `create table webhook_delivery (
    id text primary key,
    webhook_id text not null references webhook (id) on delete cascade,
    seq integer not null,
    kind text not null,
    attempt integer not null,
    status integer not null,
    error text not null default '',
    duration_ms integer not null,
    created_at integer not null
  ) strict`,
  `create index webhook_delivery_webhook on webhook_delivery (webhook_id, id)`,
  `create index webhook_delivery_age on webhook_delivery (created_at)`,
];
