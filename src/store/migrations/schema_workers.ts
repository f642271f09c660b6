/** Workers, departments, memory, engines, budgets, runners and fleets. */
export const WORKERS_SCHEMA: string[] = [
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
  `create index department_ending on department (substr(id, -6))`,

  `create table worker (
    id text primary key,
    name text not null,
    name_key text not null,
    description text not null default '',
    memory text not null default '',
    constraints text not null default '',
    engine text not null default '',
    engine_args text not null default '{}' check (json_valid(engine_args)),
    -- Variables of its runs: text, or secret:<name>.
    env text not null default '{}' check (json_valid(env)),
    scopes text not null default '[]' check (json_valid(scopes)),
    verify text not null default 'null' check (json_valid(verify)),
    work_dir text not null,
    -- The repository that its runs work on, or null.
    repo text not null default 'null' check (json_valid(repo)),
    -- Labels of the runners that run it. The first runner to do so becomes its home, unless that is none.
    runs_on text not null default '[]' check (json_valid(runs_on)),
    -- Names of gateways that its runs may use.
    gateways text not null default '[]' check (json_valid(gateways)),
    home text not null default '' check (home <> 'none' or runs_on <> '[]'),
    -- Requested from the scheduler of a launcher, or null.
    resources text not null default 'null' check (json_valid(resources)),
    -- null: the default of the configuration.
    isolation text not null default 'null' check (json_valid(isolation)),
    -- MCP servers of its runs by name; values are text, or secret:<name>.
    mcp text not null default '{}' check (json_valid(mcp)),
    -- Skills of its runs: address, commit, folder, and the name, description and digest of what is there.
    skills text not null default '[]' check (json_valid(skills)),
    -- 1: other engines may replace its own.
    fallback integer not null default 0 check (fallback in (0, 1)),
    paused integer not null default 0 check (paused in (0, 1)),
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index worker_name on worker (name_key)`,
  `create index worker_secrets on worker (id) where env <> '{}' or mcp <> '{}' or repo <> 'null'`,
  `create index worker_skills on worker (id) where skills <> '[]'`,
  `create index worker_repo on worker (id) where repo <> 'null'`,
  `create index worker_engine on worker (engine, id)`,
  `create index worker_ending on worker (substr(id, -6))`,

  `create table worker_department (
    worker_id text not null references worker (id) on delete cascade,
    department_id text not null references department (id) on delete cascade,
    primary key (worker_id, department_id)
  ) strict, without rowid`,
  `create index worker_department_department on worker_department (department_id, worker_id)`,

  `create table memory (
    scope text not null,
    key text not null,
    value text not null,
    updated_at integer not null,
    primary key (scope, key)
  ) strict, without rowid`,

  // The engine session of a worker in a conversation, and that of the engine that replaced its own last.
  `create table session_context (
    session_key text not null,
    worker_id text not null references worker (id) on delete cascade,
    fallback integer not null default 0 check (fallback in (0, 1)),
    engine text not null,
    session_id text not null,
    work_dir text not null,
    -- The totals that the engine reported so far, where it reports totals only.
    usage text not null default '{}' check (json_valid(usage)),
    updated_at integer not null,
    primary key (session_key, worker_id, fallback)
  ) strict, without rowid`,
  `create index session_context_worker on session_context (worker_id)`,

  // The rate limit of an engine's provider. The row stays until a run meets no limit.
  `create table rate_limit (
    engine text primary key,
    until integer not null,
    strikes integer not null check (strikes >= 1),
    since integer not null,
    -- 1 when the provider named the end.
    announced integer not null check (announced in (0, 1))
  ) strict, without rowid`,

  // The used part of a provider's own quota, as its engine reported it last.
  `create table engine_window (
    engine text not null,
    name text not null,
    utilization real not null,
    resets_at integer,
    seen_at integer not null,
    primary key (engine, name)
  ) strict, without rowid`,

  `create table budget (
    id text primary key,
    name text not null,
    name_key text not null unique,
    -- global, department:<id>, worker:<id>, session:<key> or engine:<name>.
    target text not null,
    unit text not null check (unit in ('runs', 'tokens', 'minutes', 'usd')),
    "limit" real not null check ("limit" >= 0),
    period text not null check (period in ('5h', '24h', '7d', 'month', 'total')),
    soft integer not null check (soft between 1 and 100),
    action text not null check (action in ('hold', 'stop')),
    lifted_until integer,
    -- The times of the latest events budget.soft and budget.hard, each written once in a period.
    soft_notified_at integer,
    hard_notified_at integer,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create index budget_target on budget (target)`,
  `create index budget_ending on budget (substr(id, -6))`,

  // Running totals of ended runs: the row of a run has the sums of its target including that run. The use in a span is
  // the difference of two rows, so each sum reads the index twice, however long the span is.
  `create table ledger (
    target text not null,
    -- The end of the run. The value never decreases, also when the clock is set back.
    at integer not null,
    runs integer not null,
    tokens integer not null,
    ms integer not null,
    -- US dollars in billionths: sums of integers are exact.
    nano_usd integer not null,
    primary key (target, at, runs)
  ) strict, without rowid`,
  `create index ledger_age on ledger (at)`,

  // The expected use of each open run, and the use that its engine has reported so far.
  `create table reservation (
    -- An execution or a run of the bee.
    execution_id text primary key,
    -- All targets that the run counts for, as a JSON list.
    targets text not null check (json_valid(targets)),
    tokens integer not null,
    ms integer not null,
    nano_usd integer not null,
    input_tokens integer,
    output_tokens integer,
    cost_usd real,
    -- Time spent waiting for a person, which does not count as minutes: ended waits, and the start of the current one.
    waited_ms integer not null default 0,
    waiting_since integer
  ) strict, without rowid`,

  // Requests and tokens of an open run through each gateway. The end of the run moves them to the journal.
  `create table gateway_use (
    -- An execution or a run of the bee.
    execution_id text not null references reservation (execution_id) on delete cascade,
    gateway text not null,
    requests integer not null,
    refused integer not null,
    -- Answers with counted tokens, and those of them whose tokens are an estimate.
    answers integer not null,
    estimated integer not null,
    input_tokens integer not null,
    output_tokens integer not null,
    -- By the engine's prices, where it has any.
    cost_usd real,
    primary key (execution_id, gateway)
  ) strict, without rowid`,

  // Other machines that run workers.
  `create table runner (
    id text primary key,
    name text not null,
    name_key text not null unique,
    labels text not null check (json_valid(labels)),
    allow_admin integer not null check (allow_admin in (0, 1)),
    -- 1 when its runs get the stored secrets that their workers name.
    secrets integer not null default 0 check (secrets in (0, 1)),
    -- The launcher that started it for one run, or '' for a runner of a person. Then its id is that of the launch.
    launcher text not null default '',
    draining integer not null default 0 check (draining in (0, 1)),
    -- The last report of its process.
    version text not null default '',
    engines text not null default '[]' check (json_valid(engines)),
    box integer not null default 0 check (box in (0, 1)),
    -- 1 when it can run workers with a repository.
    repo integer not null default 0 check (repo in (0, 1)),
    max_runs integer not null default 0,
    work_root text not null default '',
    -- Its directory and its process; each new process has the next epoch.
    place text not null default '',
    process text not null default '',
    epoch integer not null default 0,
    last_seen_at integer,
    created_at integer not null
  ) strict`,
  `create index runner_ending on runner (substr(id, -6))`,
  `create index runner_launcher on runner (launcher) where launcher <> ''`,

  // Runs that a command of the configuration brings to another scheduler.
  `create table launch (
    -- Later the id of its execution.
    id text primary key,
    task_id text not null,
    worker_id text not null,
    launcher text not null,
    state text not null check (state in ('stored', 'starting', 'launched', 'claimed', 'ended')),
    -- The first word that its command printed.
    job text not null default '',
    -- The last word of the state command.
    job_state text not null default '',
    -- Why it cannot be claimed any more, or what is known of its start.
    reason text not null default '',
    created_at integer not null,
    -- It ends then unless its runner has claimed the run. 0: it was rejected, and ends now.
    deadline_at integer not null,
    ended_at integer,
    -- When the cancel command is due; null: nothing to cancel.
    cancel_at integer,
    cancels integer not null default 0
  ) strict, without rowid`,
  `create unique index launch_task on launch (task_id) where ended_at is null`,
  `create index launch_ended on launch (ended_at) where ended_at is not null`,
  // Launches whose runner could not do the run.
  `create index launch_refused on launch (ended_at)
    where deadline_at = 0 and reason <> '' and ended_at is not null`,
  `create index launch_cancel on launch (cancel_at) where cancel_at is not null`,
  `create table launcher (
    name text primary key,
    -- Failed starts in a row.
    failures integer not null default 0,
    -- Until a person resumes it.
    paused_at integer,
    retry_at integer,
    last_error text not null default ''
  ) strict, without rowid`,

  // Runs of runners.
  `create table remote_run (
    execution_id text primary key,
    runner_id text not null,
    -- A claim that repeats this id gets this run again.
    request_id text not null,
    epoch integer not null,
    work_dir text not null,
    -- The runner owns the run until then; null once the run has ended.
    lease_until integer,
    -- The branch of its worktree before the run, and the commits that the runner has sent. '' without.
    base_commit text not null default '',
    head_commit text not null default '',
    -- The number of the last report that was stored.
    events integer not null default 0,
    -- Why the run has to end, where no other row says so.
    stop text not null default '',
    stopped_at integer,
    -- 1 when the runner itself reported the end.
    reported integer not null default 0 check (reported in (0, 1))
  ) strict, without rowid`,
  `create unique index remote_run_request on remote_run (runner_id, request_id)`,
  `create index remote_run_open on remote_run (runner_id, lease_until) where lease_until is not null`,

  // A branch of a worker's repository, with the worktree of a conversation or a task.
  `create table tree (
    id text primary key,
    worker_id text not null,
    -- The lane of its tasks.
    lane text not null,
    branch text not null,
    -- The branch of the remote repository where it started, and the commit. '' before its worktree exists.
    base text not null default '',
    base_commit text not null default '',
    head_commit text not null default '',
    -- The commit that was pushed last, or ''.
    pushed_commit text not null default '',
    -- 1 while a run works there, and after a run whose changes were not taken over.
    dirty integer not null default 0 check (dirty in (0, 1)),
    -- The state of its push, and why it did not happen.
    push text not null default '' check (push in ('', 'ask', 'asked', 'wanted', 'failed', 'blocked')),
    push_error text not null default '',
    question_id text not null default '',
    -- Failed checks and reviews of a forge that went back to its agent, and the one that came after the last round.
    rounds integer not null default 0,
    rounds_over text not null default '',
    rounds_over_at integer,
    -- The latest execution, whose changes a push contains.
    execution_id text not null default '',
    -- Size of the worktree, as of the latest run.
    bytes integer not null default 0,
    -- null while the worktree exists.
    removed_at integer,
    created_at integer not null,
    updated_at integer not null
  ) strict`,
  `create unique index tree_lane on tree (worker_id, lane)`,
  `create index tree_of_lane on tree (lane)`,
  `create index tree_worker on tree (worker_id, id)`,
  `create index tree_idle on tree (updated_at) where removed_at is null and dirty = 0`,
  `create index tree_push on tree (id) where push in ('ask', 'wanted')`,
  `create index tree_push_failed on tree (updated_at) where push in ('failed', 'blocked')`,
  `create index tree_pushed on tree (pushed_commit) where pushed_commit <> ''`,
  `create index tree_rounds_over on tree (rounds_over_at) where rounds_over_at is not null`,
  `create index tree_asked on tree (id) where push = 'asked'`,

  // The fleet that manages an object. A memory entry's id is its key.
  `create table fleet_object (
    kind text not null,
    id text not null,
    fleet text not null,
    primary key (kind, id)
  ) strict, without rowid`,
];
