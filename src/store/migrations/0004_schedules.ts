/** Schedules that can be looked after, gates and checks (contract 13, contract 15). */
export const SCHEDULES: string[] = [
  `alter table task add column name text not null default ''`,
  `alter table task add column paused integer not null default 0 check (paused in (0, 1))`,
  `alter table task add column gate text not null default 'null' check (json_valid(gate))`,
  `alter table task add column verify text not null default 'null' check (json_valid(verify))`,
  `alter table task add column overlap text not null default 'skip'
    check (overlap in ('skip', 'queue', 'replace'))`,
  // Schedules from before never pause themselves.
  `alter table task add column pause_after_failures integer not null default 0`,
  `alter table task add column deliver_to text not null default ''`,
  `alter table task add column until integer`,
  `alter table task add column max_runs integer`,
  `alter table task add column runs_ended integer not null default 0`,
  // The time that waits for the end of the present run.
  `alter table task add column queued_at integer`,

  // What is paused is never due.
  `drop index task_next`,
  `create index task_next on task (next_run_at) where next_run_at is not null and paused = 0`,
  `create index task_queued on task (queued_at) where queued_at is not null`,
  `create index task_paused on task (updated_at) where paused = 1`,
  // The list of schedules, soonest first: what has no next time comes last.
  `create index task_soonest on task (
    iif(paused = 1 or next_run_at is null, 9007199254740991, next_run_at), id)
    where type in ('countdown', 'scheduled')`,

  `alter table worker add column verify text not null default 'null' check (json_valid(verify))`,

  `alter table execution add column verify_status text check (verify_status in ('passed', 'failed'))`,
  `alter table execution add column verify_attempts integer not null default 0`,
  // A firing, from its time to its end. Those from before ended long ago; their numbers are below all others.
  `alter table occurrence rename to occurrence_before`,
  `create table occurrence (
    task_id text not null,
    -- The task's run_no when it fired.
    run_no integer not null,
    -- The minute that it fired in, once for each; null when it was asked for by hand.
    minute integer,
    due_at integer not null,
    status text not null
      check (status in ('pending', 'gating', 'running', 'completed', 'failed', 'cancelled', 'gated')),
    -- SVC_RUN_ID of the processes of its gate and of its run, and the execution that this is to be.
    run_id text not null default '',
    execution_id text not null default '',
    -- The exit code of its gate; null without one, and while it runs.
    gate_exit integer,
    error text not null default '',
    created_at integer not null,
    ended_at integer,
    primary key (task_id, run_no)
  ) strict, without rowid`,
  `insert into occurrence (task_id, run_no, minute, due_at, status, created_at, ended_at)
    select task_id, -row_number() over (partition by task_id order by minute desc), minute, minute * 60000,
      'completed', created_at, created_at
    from occurrence_before`,
  `drop table occurrence_before`,
  `create unique index occurrence_minute on occurrence (task_id, minute) where minute is not null`,
  `create index occurrence_age on occurrence (created_at)`,
  `create index occurrence_execution on occurrence (execution_id) where execution_id <> ''`,
  `create index occurrence_gating on occurrence (run_id) where status = 'gating'`,
];
