/** Other machines that run workers, and the runs that they have (contract 18). */
export const RUNNERS: string[] = [
  `create table runner (
    id text primary key,
    name text not null,
    name_key text not null unique,
    labels text not null check (json_valid(labels)),
    allow_admin integer not null check (allow_admin in (0, 1)),
    draining integer not null default 0 check (draining in (0, 1)),
    -- What its process said last.
    version text not null default '',
    engines text not null default '[]' check (json_valid(engines)),
    max_runs integer not null default 0,
    work_root text not null default '',
    -- The directory that it works in, and the process that does; each new process has the next epoch.
    place text not null default '',
    process text not null default '',
    epoch integer not null default 0,
    last_seen_at integer,
    created_at integer not null
  ) strict`,
  `create index runner_ending on runner (substr(id, -6))`,

  // A run that a runner has, or had.
  `create table remote_run (
    execution_id text primary key,
    runner_id text not null,
    -- Of the claim: repeated, it answers this run.
    request_id text not null,
    epoch integer not null,
    work_dir text not null,
    -- Until when it belongs to the runner; null once it has ended.
    lease_until integer,
    -- The number of the last report that was stored.
    events integer not null default 0,
    -- Why it is to be ended, where its rows do not say so.
    stop text not null default '',
    stopped_at integer,
    -- 1 when the runner itself told how it ended.
    reported integer not null default 0 check (reported in (0, 1))
  ) strict, without rowid`,
  `create unique index remote_run_request on remote_run (runner_id, request_id)`,
  `create index remote_run_open on remote_run (runner_id, lease_until) where lease_until is not null`,
  `create trigger execution_remote_gone after delete on execution begin
    delete from remote_run where execution_id = old.id;
  end`,

  // Where a worker runs: on runners with these labels, and from its first run on where its directory is.
  `alter table worker add column runs_on text not null default '[]' check (json_valid(runs_on))`,
  `alter table worker add column home text not null default ''`,
];
