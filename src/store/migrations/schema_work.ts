/** Tasks, their occurrences, and executions. */
export const WORK_SCHEMA: string[] = [
  `create table task (
    id text primary key,
    name text not null default '',
    message_id text not null,
    worker_id text not null,
    session_key text not null,
    created_by text not null,
    parent_task_id text,
    -- How many tasks of agents led to this one.
    depth integer not null default 0,
    instruction text not null,
    type text not null check (type in ('immediate', 'countdown', 'scheduled')),
    scheduled_at integer,
    cron text not null default '',
    time_zone text not null default '',
    paused integer not null default 0 check (paused in (0, 1)),
    gate text not null default 'null' check (json_valid(gate)),
    verify text not null default 'null' check (json_valid(verify)),
    overlap text not null default 'skip'
      check (overlap in ('skip', 'queue', 'replace')),
    pause_after_failures integer not null default 0,
    deliver_to text not null default '',
    until integer,
    max_runs integer,
    -- What shares a worktree of its worker's repository, as <kind>:<key>; '' without a repository. A trigger sets it.
    lane text not null default '',
    status text not null
      check (status in ('scheduled', 'pending', 'running', 'completed', 'failed', 'cancelled')),
    reason text not null default '',
    -- The next time of a countdown or a schedule, and a time that waits for the end of the current run.
    next_run_at integer,
    queued_at integer,
    -- While pending: the place in its worker's queue, before which it does not run.
    due_at integer,
    -- Why a pending task may not start, as <kind>:<id>; '' when it may.
    held text not null default '',
    held_until integer,
    -- Runs that count for limits.max_attempts; a graceful stop gives its attempt back.
    attempt integer not null default 0,
    execution_id text,
    -- The tasks that it waits for, in their order. task_parent has how they ended.
    after text not null default '[]' check (json_valid(after)),
    after_when text not null default 'success' check (after_when in ('success', 'end')),
    -- The length of the longest chain of tasks that it waits for.
    after_depth integer not null default 0,
    -- Parents that have not ended. The triggers of task_parent keep it.
    open_parents integer not null default 0,
    -- The parent whose failure cancelled it, else ''.
    stopped_by text not null default '',
    run_count integer not null default 0,
    -- Counts the runs that were requested or fell due, and those that ended.
    run_no integer not null default 0,
    runs_ended integer not null default 0,
    -- The latest ended run of a schedule.
    last_status text not null default ''
      check (last_status in ('', 'completed', 'failed', 'cancelled')),
    last_run_at integer,
    last_error text not null default '',
    failures_in_row integer not null default 0,
    created_at integer not null,
    updated_at integer not null,
    check (status <> 'pending' or due_at is not null),
    check (status <> 'scheduled' or next_run_at is not null)
  ) strict`,
  `create index task_session on task (session_key, id)`,
  `create index task_message on task (message_id, id)`,
  `create index task_worker on task (worker_id, id)`,
  `create index task_ending on task (substr(id, -6))`,
  `create index task_name on task (name)`,
  // A paused schedule is never due.
  `create index task_next on task (next_run_at) where next_run_at is not null and paused = 0`,
  `create index task_queued on task (queued_at) where queued_at is not null`,
  // The queue has the unblocked tasks whose parents have ended. For each reason of a block, the dispatcher reads only the first blocked task.
  `create index task_lane on task (worker_id, lane, due_at, id)
    where status = 'pending' and held = '' and open_parents = 0`,
  `create index task_held on task (held, worker_id, due_at, id) where status = 'pending' and held <> ''`,
  `create index task_due on task (due_at) where status = 'pending' and open_parents = 0`,
  `create index task_stopped_at on task (updated_at) where stopped_by <> ''`,
  `create index task_stopped_by on task (stopped_by) where stopped_by <> ''`,
  `create index task_active on task (session_key, worker_id) where status in ('pending', 'running', 'scheduled')`,
  `create index task_of_worker on task (worker_id, status) where status in ('pending', 'running', 'scheduled')`,
  `create index task_ended on task (updated_at) where status in ('completed', 'failed', 'cancelled')`,
  `create index task_stopped on task (id) where status in ('failed', 'cancelled')`,
  `create index task_paused on task (updated_at) where paused = 1`,
  `create index task_failing on task (failures_in_row) where failures_in_row > 0`,
  // The list of schedules, soonest first; those without a next time come last.
  `create index task_soonest on task (
    iif(paused = 1 or next_run_at is null, 9007199254740991, next_run_at), id)
    where type in ('countdown', 'scheduled')`,
  // The schedules that a fleet file can name, in the order in which it reads them page by page.
  `create index task_named on task (id)
    where status in ('pending', 'running', 'scheduled') and type = 'scheduled' and name <> ''`,

  // A task that another one waits for. Status and result are copies, so they stay when the parent is deleted.
  `create table task_parent (
    task_id text not null,
    position integer not null,
    parent_id text not null,
    -- '' while the parent has not ended.
    status text not null default '' check (status in ('', 'completed', 'failed', 'cancelled')),
    result text not null default '',
    ended_at integer,
    primary key (task_id, position)
  ) strict, without rowid`,
  `create index task_parent_child on task_parent (parent_id, task_id)`,

  // A firing of a schedule or a countdown, from its time to its end.
  `create table occurrence (
    task_id text not null,
    -- The task's run_no when it fired.
    run_no integer not null,
    -- The minute in which it fired, one firing each; null for a run by hand.
    minute integer,
    due_at integer not null,
    status text not null
      check (status in ('pending', 'gating', 'running', 'completed', 'failed', 'cancelled', 'gated')),
    -- SVC_RUN_ID of the processes of its gate and of its run, and the id that its execution gets.
    run_id text not null default '',
    execution_id text not null default '',
    -- The exit code of its gate; null without a gate, and while the gate runs.
    gate_exit integer,
    error text not null default '',
    created_at integer not null,
    ended_at integer,
    primary key (task_id, run_no)
  ) strict, without rowid`,
  `create unique index occurrence_minute on occurrence (task_id, minute) where minute is not null`,
  `create index occurrence_age on occurrence (created_at)`,
  `create index occurrence_execution on occurrence (execution_id) where execution_id <> ''`,
  `create index occurrence_gating on occurrence (run_id) where status = 'gating'`,

  `create table execution (
    id text primary key,
    worker_id text not null,
    worker_name text not null,
    task_id text not null,
    -- The run of its task.
    run_no integer not null default 0,
    message_id text not null,
    session_key text not null,
    session_id text not null default '',
    engine text not null,
    -- The engine of its worker when another one replaced it, else ''.
    fallback_from text not null default '',
    instruction text not null,
    status text not null check (status in ('pending', 'running', 'completed', 'failed')),
    result text not null default '',
    error text not null default '',
    failure text not null default ''
      check (failure in ('', 'exit_code', 'engine_error', 'timeout', 'idle_timeout', 'cancelled', 'spawn_failed',
        'server_lost', 'rate_limited', 'budget', 'verify_failed', 'setup', 'isolation')),
    exit_code integer,
    verify_status text check (verify_status in ('passed', 'failed')),
    verify_attempts integer not null default 0,
    attempt integer not null,
    -- SVC_RUN_ID, which marks every process of the run.
    run_id text not null,
    -- Stored before the processes end, so that the reason survives a crash.
    cancelled_by text not null default '',
    -- Whether its agent said or did something, or its engine could not be used: another engine may then do the attempt.
    engine_use text not null default '' check (engine_use in ('', 'acted', 'unusable')),
    -- 0 after its session was cleared: the end of the run must not restore the context.
    keeps_context integer not null default 1 check (keeps_context in (0, 1)),
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    -- Its worktree, and its changes there. null before its end, and without a repository.
    tree_id text not null default '',
    branch text not null default '',
    base_commit text not null default '',
    head_commit text not null default '',
    files_changed integer,
    insertions integer,
    deletions integer,
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
  // Sums the use of ended runs from the index alone. In a row these columns come after the texts, which SQLite would read.
  `create index execution_completed on execution (
    completed_at, engine, session_key, status, started_at, input_tokens, output_tokens, cost_usd)
    where completed_at is not null`,
  `create index execution_open on execution (worker_id) where status in ('pending', 'running')`,
  `create index execution_engine on execution (engine, id)`,
  `create index execution_fallback on execution (session_key, worker_id, id) where fallback_from <> ''`,
  `create index execution_ending on execution (substr(id, -6))`,

  // Words of people for a run in progress.
  `create table steer (
    id text primary key,
    execution_id text not null,
    task_id text not null,
    worker_id text not null,
    session_key text not null,
    message_id text not null,
    content text not null,
    status text not null check (status in ('queued', 'sent', 'delivered')),
    -- 1: the run was lost or postponed, so the next attempt of its task gets the words in its prompt.
    carried integer not null default 0 check (carried in (0, 1)),
    follow_up_task_id text,
    created_by text not null,
    created_at integer not null,
    delivered_at integer
  ) strict`,
  `create index steer_execution on steer (execution_id, id)`,
  `create index steer_carried on steer (task_id, id) where carried = 1`,
  `create index steer_follow_up on steer (follow_up_task_id) where follow_up_task_id is not null`,
  `create index steer_session on steer (session_key)`,
  `create index steer_age on steer (created_at)`,
];
